import type { NativeErrorFields } from './contract.js';

/** An error of the addon: the kernel's, the socket's, the compiler's or a program's. Misuse is a TypeError and is not one of these. */
export type NativeError = Error & NativeErrorFields;

const CODES: readonly string[] = [
  'ERR_NETLINK',
  'ERR_NFT_JSON',
  'ERR_NETLINK_DECODE',
  'ERR_IPTABLES',
] satisfies NativeErrorFields['code'][];

export function isNativeError(error: unknown): error is NativeError {
  if (!(error instanceof Error) || !('code' in error) || !('operation' in error)) return false;
  return typeof error.code === 'string' && CODES.includes(error.code);
}
