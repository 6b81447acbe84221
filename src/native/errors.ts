import type { NativeErrorFields } from './contract.js';

/** An error of the addon: the kernel's, the socket's or the compiler's. Misuse is a TypeError and is not one of these. */
export type NativeError = Error & NativeErrorFields;

const CODES: readonly string[] = [
  'ERR_NETLINK',
  'ERR_NFT_JSON',
  'ERR_NETLINK_DECODE',
] satisfies NativeErrorFields['code'][];

export function isNativeError(error: unknown): error is NativeError {
  if (!(error instanceof Error) || !('code' in error) || !('operation' in error)) return false;
  return typeof error.code === 'string' && CODES.includes(error.code);
}

/** Whether the kernel refused with this errno, such as `ENOENT`. */
export function hasErrno(error: unknown, errno: string): error is NativeError {
  return isNativeError(error) && error.errno === errno;
}

/**
 * Whether nobody can say if the kernel took the transaction: its answer was lost (ENOBUFS, ETIMEDOUT) or could not be read. What was sent
 * has to be compared with a listing.
 */
export function isOutcomeUnknown(error: unknown): error is NativeError {
  if (!isNativeError(error)) return false;
  return error.code === 'ERR_NETLINK_DECODE' || error.errno === 'ENOBUFS' || error.errno === 'ETIMEDOUT';
}
