import type { Flag } from '../config/flag.js';

/** A command as users see it. Its help, its man page, its completion and its section in docs/commands.md are made from this. */
export interface CommandSpec {
  readonly name: string;
  /** What it does, in a phrase that begins with a verb. */
  readonly summary: string;
  /** What stands behind the name; empty: flags alone. */
  readonly operands: string;
  /** Words that an operand may be, for completion. */
  readonly words?: readonly string[];
  /** Paragraphs. */
  readonly about: readonly string[];
  readonly examples: readonly Example[];
  /** Flags of its own, in the order to print. */
  readonly flags: readonly Flag[];
  /** Flags of the proxy that it takes as well, and which of them are worth a line. */
  readonly proxyFlags: { readonly taken: readonly Flag[]; readonly shown: readonly string[] } | null;
  readonly exits: ExitStatuses;
}

interface Example {
  readonly line: string;
  readonly says: string;
}

/** What each exit status means; null: it does not happen. */
interface ExitStatuses {
  readonly 0: string;
  readonly 1: string | null;
  readonly 2: string | null;
}
