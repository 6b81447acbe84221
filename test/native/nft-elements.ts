/** Elements in the kernel of this process's namespace, by the table of skeleton.ts. */
import type { NftElementsListing, NftElementsOperation, NftOperation } from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';
import type { NativeError } from '../../src/native/errors.js';
import { loadAddon } from '../../src/native/load.js';
import { setsOfText, skeleton, TABLE } from './skeleton.js';
import type { Command } from './skeleton.js';

export const addon = loadAddon().nftables;

export const command = (...list: readonly Command[]): NftOperation => ({ type: 'commands', commands: list });
export const owner = { family: 'ip', table: TABLE } as const;
export const transact = (...operations: readonly NftOperation[]): Promise<unknown> =>
  addon.nftTransact({ ...owner, operations });

export async function fresh(): Promise<void> {
  const table = { table: { family: 'ip', name: TABLE } };
  await transact(command({ add: table }, { delete: table }));
  await transact(command(...skeleton('ip'), ...setsOfText('ip')));
}

/** Rows of equal length as a column. */
export const column = (rows: readonly (readonly number[])[]): Buffer => Buffer.from(rows.flat());

export function elements(
  set: string,
  verb: 'add' | 'delete',
  keys: readonly (readonly number[])[],
): NftElementsOperation {
  const keyLength = keys[0]?.length ?? 4;
  const none = { keyEnds: null, dataLength: 0, data: null, gotoChains: null, comments: null };
  return { type: 'elements', verb, set, count: keys.length, keyLength, keys: column(keys), ...none };
}

export function withData(operation: NftElementsOperation, rows: readonly (readonly number[])[]): NftElementsOperation {
  return { ...operation, dataLength: rows[0]?.length ?? 0, data: column(rows) };
}

const TCP = [6, 0, 0, 0];
export const frontend = (host: number, port = 80): readonly number[] => [
  10,
  96,
  0,
  host,
  ...TCP,
  port >> 8,
  port & 255,
  0,
  0,
];
export const endpoint = (host: number): readonly number[] => [10, 244, 0, host, 31, 144, 0, 0];

export async function listed(set: string): Promise<NftElementsListing | null> {
  const listing = await addon.nftList('ip', TABLE, [set]);
  return listing?.sets.find((each) => each.name === set)?.elements ?? null;
}

/** Rows as text, sorted: the kernel's order means nothing. */
export function rows(listing: NftElementsListing | null): readonly string[] {
  if (listing === null) return [];
  const { count, keys, keyEnds, data, verdicts, comments } = listing;
  const hex = (bytes: Uint8Array | null, index: number): string => {
    if (bytes === null) return '-';
    const length = bytes.length / count;
    return Buffer.from(bytes.subarray(index * length, (index + 1) * length)).toString('hex');
  };
  const row = (index: number): string =>
    [hex(keys, index), hex(keyEnds, index), hex(data, index), verdicts?.[index] ?? '-', comments?.[index] ?? '-'].join(
      ' ',
    );
  return Array.from({ length: count }, (_, index) => row(index)).sort();
}

export async function failure(promise: Promise<unknown>): Promise<NativeError> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (isNativeError(error)) return error;
  throw new Error('expected a rejection with a native error', { cause: error });
}
