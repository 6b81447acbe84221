import type { IptablesTable } from '../../../src/native/contract.js';
import type { NativeErrorFields } from '../../../src/native/errors.js';

/** What the addon rejects with when a program fails. */
export class ProgramError extends Error implements NativeErrorFields {
  readonly code = 'ERR_IPTABLES';
  readonly operation = 'iptables restore';
  readonly kernelMessage = null;
  readonly index = null;
  readonly element = null;

  constructor(
    message: string,
    readonly errno: string | null,
    readonly object: string | null,
  ) {
    super(`iptables restore: ${message}`);
  }
}

/** A program complains about something. */
export function refusal(message: string, object: string): ProgramError {
  return new ProgramError(`${message}: ${object}`, null, null);
}

/** It complained about what is written to a table. @param flavor the kernel tells the legacy programs nothing of a rule. */
export function refusalIn(table: IptablesTable, error: Error): ProgramError {
  return new ProgramError(error.message, null, `${table}: COMMIT`);
}
