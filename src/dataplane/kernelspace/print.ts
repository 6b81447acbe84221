import type { HcnOperation } from '../../native/contract.js';

/** What is sent to HNS, an operation a line, as HNS takes it. */
export function printOperation(operation: HcnOperation): string {
  const head = `hns ${operation.type} ${operation.kind} ${operation.id ?? 'new'}`;
  if (operation.type === 'delete') return head;
  return `${head} ${JSON.stringify(operation.settings)}`;
}
