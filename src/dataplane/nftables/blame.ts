import { addressLength, type Family } from '../../base/ip.js';
import type { NftOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { FrontendKey } from '../../plan/types.js';
import { unpackLocal } from './affinity/local-endpoints.js';
import { chainsOfFrontend } from './frontend-elements.js';
import { SERVICE_LENGTH, unpackClientKey, unpackFrontend } from './keys.js';
import { SET } from './names.js';
import { objectsOfChain } from './structure.js';
import type { FrontendStep } from './sync-plan.js';

/**
 * The frontend of the element that the kernel refused; null when the error names none. Every key that concerns one frontend
 * ends with the frontend's, except that of a local endpoint.
 */
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
  const whole = Buffer.from(operation.keys.subarray(end - operation.keyLength, end)).toString('latin1');
  if (operation.set === SET.stickyLocals) return unpackLocal(family, whole)?.key ?? null;
  const packed = whole.slice(-length);
  return nodePorts ? unpackFrontend(family, packed) : unpackClientKey(family, packed);
}

/**
 * Whether the kernel refused to remove the note of a gone frontend's flows. Nothing depends on it: the frontend itself may be
 * there again.
 */
export function isNoteRemoval(error: unknown): boolean {
  return isNativeError(error) && /^delete element stale-(?:nodeport-)?flows\b/.test(error.object ?? '');
}

/** The chain, set or map whose command the kernel refused; null: it was no command. */
export function refusedObject(error: unknown): string | null {
  if (!isNativeError(error) || error.object === null) return null;
  return /^\w+ (?:chain|rule|set|map|ct timeout|counter) ([^\s:]+)/.exec(error.object)?.[1] ?? null;
}

/** Frontends that cannot come to where they should be without a chain, set or map; none when all need it. */
export function usersOf(object: string, steps: readonly FrontendStep[]): readonly FrontendKey[] {
  const leads = new Map<string, boolean>();
  const leadsThere = (chain: string): boolean => {
    const known = leads.get(chain) ?? objectsOfChain(chain).includes(object);
    leads.set(chain, known);
    return known;
  };
  return steps.flatMap(({ key, next }) => (chainsOfFrontend(next).some(leadsThere) ? [key] : []));
}
