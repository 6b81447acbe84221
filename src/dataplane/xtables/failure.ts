import { messageOf } from '../../base/error-message.js';
import type { IptablesTable } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import { tablesBefore } from './operations.js';

/**
 * The table in which a stream was refused for its content. The tables before it were written. Nothing was done in it and in
 * those after it, as the programs go from COMMIT to COMMIT. Null: it failed for another reason, such as the lock, and it is
 * unknown how far it came.
 *
 * @param tables of the stream.
 */
export function refusedTable(error: unknown, tables: readonly IptablesTable[]): IptablesTable | null {
  const inOrder = [...tables].sort((one, other) => tablesBefore(one).length - tablesBefore(other).length);
  // Misuse: the addon does not take it, and has begun nothing.
  if (error instanceof TypeError) return inOrder[0] ?? null;
  if (!isNativeError(error) || error.code !== 'ERR_IPTABLES' || error.errno !== null) return null;
  return inOrder.find((table) => error.object?.startsWith(`${table}: `)) ?? null;
}

/** Without the number of a line in a stream that is not shown: the same each time. */
export function reasonOf(error: unknown): string {
  return messageOf(error).replace(/\bline:? \d+/g, 'a line');
}
