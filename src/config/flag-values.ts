import { parseAddress } from '../base/ip.js';
import { parseDuration } from './duration.js';
import { parseHostPort, withPort } from './host-port.js';
import { isFloat32, isQuantity, OUT_OF_FLOAT32 } from './quantity.js';

/** How the text of a flag is read, in the terms of the flag library of the Kubernetes components. */
export type FlagType =
  | 'bool'
  | 'int32'
  | 'float32'
  | 'string'
  | 'duration'
  | 'quantity'
  /** An IP address; empty text changes nothing. */
  | 'address'
  /** An IP address with or without a port; empty text changes nothing. */
  | 'address-port'
  /** One value per occurrence. */
  | 'list'
  /** Comma separated, and may be repeated. */
  | 'words'
  /** `Name=true` pairs, like words. */
  | 'gates'
  /** `pattern=N` pairs, like words. */
  | 'vmodule';

/** Durations are canonical text; pairs are words with an equals sign. */
export type FlagValue = string | number | boolean | readonly string[];

/** What is wrong with a value. */
export class Refusal {
  constructor(readonly detail: string) {}
}

/**
 * Reads one occurrence of a flag.
 *
 * @param previous what its occurrences before gave.
 */
export function readFlagValue(type: FlagType, text: string, previous: FlagValue | undefined): FlagValue | Refusal {
  switch (type) {
    case 'string':
      return text;
    case 'bool':
      return readTruth(text) ?? new Refusal('must be true or false');
    case 'int32':
      return readInt32(text) ?? new Refusal('must be a 32-bit integer');
    case 'float32':
      return readFloat32(text);
    case 'duration':
      return parseDuration(text) ?? new Refusal('must be a duration such as "30s", "1h5m" or "500ms"');
    case 'quantity':
      return isQuantity(text) ? text : new Refusal('must be a quantity such as "64Ki"');
    case 'address':
      return text === '' || parseAddress(text) !== null ? text : new Refusal('must be an IP address');
    case 'address-port':
      return text === '' || typeof parseHostPort(withPort(text, 1)) === 'object'
        ? text
        : new Refusal('must be an IP address or IP:port');
    case 'list':
      return [...earlier(previous), text];
    case 'words':
      return [...earlier(previous), ...(text === '' ? [] : text.split(','))];
    case 'gates':
    case 'vmodule':
      return readPairs(type, text, earlier(previous));
  }
}

/** A value as the Kubernetes components print it. */
export function printFlagValue(type: FlagType, value: FlagValue): string {
  if (typeof value !== 'object') return String(value);
  return type === 'words' || type === 'list' ? `[${value.join(',')}]` : value.join(',');
}

function earlier(previous: FlagValue | undefined): readonly string[] {
  return typeof previous === 'object' ? previous : [];
}

const TRUE_WORDS = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE_WORDS = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

/** A truth as flags of the Kubernetes components spell it; null for anything else. */
export function readTruth(text: string): boolean | null {
  if (TRUE_WORDS.includes(text)) return true;
  return FALSE_WORDS.includes(text) ? false : null;
}

/** Decimal, or as Go writes other bases: `0x1f`, `0b11`, `0o17`, `017`. */
function readInt32(text: string): number | null {
  const [, sign = '', digits = ''] = /^([-+]?)(0x[0-9a-f]+|0b[01]+|0o?[0-7]+|\d{1,10})$/i.exec(text) ?? [];
  if (digits === '' || /^0\d*[89]/.test(digits)) return null;
  const magnitude = /^0[0-7]+$/.test(digits) ? parseInt(digits, 8) : Number(digits);
  const value = sign === '-' ? 0 - magnitude : magnitude;
  return value >= -(2 ** 31) && value < 2 ** 31 ? value : null;
}

/** A number beyond what 32 bits hold is refused, as Go's parser refuses it; one too small to differ from 0 is 0. */
function readFloat32(text: string): number | Refusal {
  if (!/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) return new Refusal('must be a number');
  const value = Number(text);
  return isFloat32(value) ? value : new Refusal(OUT_OF_FLOAT32);
}

function readPairs(type: 'gates' | 'vmodule', text: string, previous: readonly string[]): readonly string[] | Refusal {
  const pairs = [...previous];
  for (const item of text.split(',')) {
    if (item.trim() === '') continue;
    const [name = '', value = '', ...rest] = item.split('=').map((part) => part.trim());
    const read = type === 'gates' ? readTruth(value) : readLevel(value);
    if (name === '' || read === null || rest.length > 0)
      return new Refusal(type === 'gates' ? 'must be Name=true or Name=false pairs' : 'must be pattern=N pairs');
    pairs.push(`${name}=${read}`);
  }
  return pairs;
}

function readLevel(text: string): number | null {
  const level = /^\d{1,10}$/.test(text) ? Number(text) : Infinity;
  return level < 2 ** 31 ? level : null;
}
