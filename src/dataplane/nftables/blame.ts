import { addressLength, type Family } from '../../base/ip.js';
import type { NftOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { FrontendKey } from '../../plan/types.js';
import { SERVICE_LENGTH, unpackClientKey, unpackFrontend } from './keys.js';
import { SET } from './names.js';

/** Whose element it was that the kernel refused; null when the error tells of none. Every key that concerns one frontend ends with the frontend's. */
export function refusedFrontend(
  family: Family,
  operations: readonly NftOperation[],
  error: unknown,
): FrontendKey | null {
  if (!isNativeError(error) || error.index === null || error.element === null) return null;
  const operation = operations[error.index];
  if (operation?.type !== 'elements' || operation.set === SET.hairpin) return null;
  const nodePorts = operation.set.includes('nodeport');
  const length = SERVICE_LENGTH + (nodePorts ? 0 : addressLength(family));
  const end = (error.element + 1) * operation.keyLength;
  if (operation.keyLength < length || end > operation.keys.length) return null;
  const packed = Buffer.from(operation.keys.subarray(end - length, end)).toString('latin1');
  return nodePorts ? unpackFrontend(family, packed) : unpackClientKey(family, packed);
}
