import type { HcnOperation } from '../../native/contract.js';

/** The operations to HNS, one a line, as HNS takes them. */
export function printOperation(operation: HcnOperation): string {
  const head = `hns ${operation.type} ${operation.kind} ${operation.id ?? 'new'}`;
  if (operation.type === 'delete') return head;
  return `${head} ${JSON.stringify(operation.settings)}`;
}
