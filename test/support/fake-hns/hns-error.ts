import type { HcnKind, HcnOperation } from '../../../src/native/contract.js';
import type { NativeErrorFields } from '../../../src/native/errors.js';

/** What HNS answers when it refuses. */
export class HnsError extends Error implements NativeErrorFields {
  readonly code = 'ERR_HCN';
  readonly kernelMessage: string;
  readonly element = null;

  constructor(
    readonly errno: string,
    readonly operation: string,
    readonly object: string | null,
    readonly index: number | null,
  ) {
    super(`${operation}: ${errno}${object === null ? '' : ` at ${object}`}`);
    this.name = 'HnsError';
    this.kernelMessage = JSON.stringify({ Success: false, Error: errno });
  }
}

export function objectOf({ type, kind, id }: HcnOperation): string {
  return `${type} ${kind satisfies HcnKind} ${id ?? 'new'}`;
}
