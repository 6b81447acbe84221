/** What is wrong with a command line or a configuration file: every problem found, each naming its flag or field path and value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  readonly problems: readonly string[];
  /** Whose flags to name beside an error in the command line, a command or `pointsman`; null for all others. */
  readonly usage: string | null;

  /** A word of the command line that nothing is known of; null: there is none. */
  readonly unknown: string | null;

  /** @param stage put before the problems, as in `failed validate`; null for none. */
  constructor(
    code: ConfigErrorCode,
    stage: string | null,
    problems: readonly string[],
    usage: string | null = null,
    unknown: string | null = null,
  ) {
    super(stage === null ? joinProblems(problems) : `${stage}: ${joinProblems(problems)}`);
    this.code = code;
    this.problems = problems;
    this.usage = usage;
    this.unknown = unknown;
  }
}

type ConfigErrorCode = 'CONFIG_USAGE' | 'CONFIG_READ' | 'CONFIG_DECODE' | 'CONFIG_INVALID';

/** A file of a million wrong entries shall not produce a megabyte of message. */
const MAX_SHOWN = 50;
const MAX_VALUE_LENGTH = 200;

/** One problem as it is, several in brackets, and no more than a person will read. */
export function joinProblems(problems: readonly string[]): string {
  const more = problems.length - MAX_SHOWN;
  const shown = more > 0 ? [...problems.slice(0, MAX_SHOWN), `and ${more} more`] : problems;
  return shown.length === 1 ? (shown[0] ?? '') : `[${shown.join(', ')}]`;
}

export function invalid(path: string, value: unknown, detail: string): string {
  return `${path}: Invalid value: ${printValue(value)}: ${detail}`;
}

/** A value as an error message shows it: text in quotes and cut to a bearable length, containers by their brackets only. */
export function printValue(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(clip(value));
  }
  if (Array.isArray(value)) return '[…]';
  return typeof value === 'object' && value !== null ? '{…}' : String(value);
}

/** Text cut to a length that a message can bear. */
export function clip(text: string): string {
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}
