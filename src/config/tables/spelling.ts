import { durationFromNanoseconds, parseDuration, type GoDuration } from '../duration.js';
import { isFloat32, isQuantity } from '../quantity.js';

/** How a scalar is written, and what to say where it is not written so. */
export interface Spelling {
  readonly in: 'string' | 'number' | 'boolean' | 'string or number';
  /** @param raw as it stands in the document. */
  readonly test: (value: string, raw: unknown) => boolean;
  readonly should: string;
  /** The one way to write a value that passed the test; absent: as it stands. */
  readonly canonical?: (raw: string | number | boolean) => string;
  /** What nothing written means where no default says it; absent: empty text, 0 or false. */
  readonly zero?: string;
}

export function string(should: string, test: Spelling['test']): Spelling & { readonly in: 'string' } {
  return { in: 'string', test, should };
}

function always(): boolean {
  return true;
}

const A_DURATION = 'a duration such as "30s", "1h5m" or "500ms"';

/** Numbers are nanoseconds. */
function goDuration(raw: string | number | boolean): string {
  return typeof raw === 'number' ? durationFromNanoseconds(BigInt(raw)) : (parseDuration(String(raw)) ?? '0s');
}

/** The bytes that base64 text stands for; null when it is none. */
export function base64Bytes(text: string): Uint8Array | null {
  const digits = text.replace(/[\r\n]/g, '');
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(digits)) return null;
  return Buffer.from(digits, 'base64');
}

export const BASIC = {
  string: string('text', always),
  base64: string('base64', (value) => base64Bytes(value) !== null),
  bool: { in: 'boolean', test: always, should: 'true or false' },
  int: { in: 'number', test: always, should: 'an integer' },
  number: { in: 'number', test: always, should: 'a number' },
  float32: { in: 'number', test: (value) => isFloat32(Number(value)), should: 'a number' },
  duration: { ...string(A_DURATION, (value) => parseDuration(value) !== null), canonical: goDuration, zero: '0s' },
  'duration or integer': {
    in: 'string or number',
    test: (value, raw) => (typeof raw === 'number' ? Number.isSafeInteger(raw) : parseDuration(value) !== null),
    should: A_DURATION,
    canonical: goDuration,
    zero: '0s',
  },
  quantity: {
    in: 'string or number',
    test: isQuantity,
    should: 'a quantity such as "64Ki"',
    canonical: String,
    zero: '0',
  },
} as const satisfies Readonly<Record<string, Spelling>>;

export type BasicFormat = keyof typeof BASIC;

/** What reading a scalar gives. */
export type ScalarValue<F extends string, In extends Spelling['in']> = F extends 'duration' | 'duration or integer'
  ? GoDuration
  : In extends 'number'
    ? number
    : In extends 'boolean'
      ? boolean
      : string;
