import type { FlagType, FlagValue } from './flag-values.js';

/** What a flag is to the command line. */
interface FlagText {
  /** With dashes; underscores are accepted in their place. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** What stands for the value in the usage text; absent: the type's own word. */
  readonly value?: string;
  readonly help: string;
  /** Whether it counts beside --config; flags that are not part of the configuration always do. */
  readonly overridesFile?: boolean;
  /** It acts on this platform alone: on others it sets nothing, and the remark is said. On it there is nothing to remark. */
  readonly platform?: NodeJS.Platform;
  /** Why it has no effect here, or what to use in its place: said when it is given. */
  readonly remark?: string;
  /** Its value may be a credential and is never printed. */
  readonly secret?: boolean;
  /** Its value may be a URL, which is printed without what may be a credential. */
  readonly url?: boolean;
}

/** One row of the command line. */
export interface Flag extends FlagText {
  readonly type: FlagType;
  /** What it counts as when it is not given, as it is printed. */
  readonly initial: string;
  /** Puts the value into the configuration; absent for flags that are not part of it. */
  readonly set?: <D extends object>(document: D, value: FlagValue) => D;
}

/** What a field says of the flag that sets it: its type and what it counts as are the field's, where they are not given. */
export interface FlagRow extends FlagText {
  readonly type?: FlagType;
  readonly initial?: string;
  /** Whether empty text changes nothing. */
  readonly ignoresEmpty?: true;
  /** Spells its text as the field has it. */
  readonly spell?: (text: string) => string;
}

type Row<N> = Flag & { readonly name: N };
type More = Partial<Pick<FlagText, 'short' | 'value' | 'url' | 'secret' | 'remark'>>;

/** The row of a flag that sets no field. */
export function row<N extends string>(name: N, type: FlagType, help: string, initial: string, more: More = {}): Row<N> {
  return { name, type, help, initial, ...more };
}

export function text<N extends string>(name: N, value: string, help: string, initial = '', more: More = {}): Row<N> {
  return row(name, 'string', help, initial, { value, ...more });
}

/** Of a switch that is off unless it is given. */
export function bool<N extends string>(name: N, help: string, more: More = {}): Row<N> {
  return row(name, 'bool', help, 'false', more);
}

export function int<N extends string>(name: N, help: string, initial: string, more: More = {}): Row<N> {
  return row(name, 'int32', help, initial, more);
}
