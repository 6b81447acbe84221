import type { NativeErrorFields } from '../../../src/native/errors.js';

/** What the addon rejects with when the kernel refuses. */
export class KernelError extends Error implements NativeErrorFields {
  readonly code = 'ERR_NETLINK';
  readonly errno: string;
  readonly operation: string;
  readonly kernelMessage = null;
  readonly object: string | null;
  readonly index: number | null;
  readonly element: number | null;

  constructor(
    errno: string,
    operation: string,
    place: { readonly object: string | null; readonly index: number | null; readonly element: number | null },
  ) {
    super(`${operation}: ${errno}${place.object === null ? '' : ` at ${place.object}`}`);
    this.name = 'KernelError';
    this.errno = errno;
    this.operation = operation;
    this.object = place.object;
    this.index = place.index;
    this.element = place.element;
  }
}

/** A refusal of one object, before it is known which operation it belongs to. */
export class Refusal extends Error {
  constructor(
    readonly errno: string,
    readonly element: number | null = null,
  ) {
    super(errno);
  }
}
