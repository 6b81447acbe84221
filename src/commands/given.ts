import { mostSimilar } from '../base/similar.js';
import { ConfigError } from '../config/errors.js';
import type { Flag } from '../config/flag.js';
import { parseWords, type ParsedWords } from '../config/flags.js';
import type { CommandSpec } from './command.js';
import { usageLine } from './usage.js';

/** The flags and words that a command was given. */
export class Given<Name extends string = string> {
  constructor(
    private readonly flags: readonly Flag[],
    private readonly words: ParsedWords,
  ) {}

  get help(): boolean {
    return this.words.help;
  }

  get operands(): readonly string[] {
    return this.words.operands;
  }

  /** Of a flag of text; what counts where it is not given. */
  text(name: Name): string {
    return this.optional(name) ?? this.flags.find((flag) => flag.name === name)?.initial ?? '';
  }

  /** Null: it was not given. */
  optional(name: Name): string | null {
    const value = this.words.given.get(name);
    return typeof value === 'string' ? value : null;
  }

  /** The value of a flag of numbers, or its default. */
  number(name: Name): number {
    const value = this.words.given.get(name);
    return typeof value === 'number' ? value : 0;
  }

  isSet(name: Name): boolean {
    return this.words.given.get(name) === true;
  }
}

/** Parses the arguments of a command; what is wrong with them, where something is. */
export function parseGiven(
  { name, flags }: Pick<CommandSpec, 'name' | 'flags'>,
  argv: readonly string[],
): Given | string {
  try {
    return new Given(flags, parseWords(flags, argv, name));
  } catch (error) {
    if (error instanceof ConfigError)
      return [error.message, adviceOf(error, flags)].filter((line) => line !== '').join('; ');
    throw error;
  }
}

/** What a command prints beside a problem of its command line. */
export function refusal(problem: string, spec: CommandSpec): string {
  return `${problem}\n\n${usageLine(spec)}\n`;
}

function adviceOf({ unknown }: ConfigError, flags: readonly Flag[]): string {
  const names = flags.map((flag) => flag.name);
  const similar = unknown?.startsWith('--') === true ? mostSimilar(unknown.slice(2), names) : null;
  return similar === null ? '' : `did you mean --${similar}?`;
}
