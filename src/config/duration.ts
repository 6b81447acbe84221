import { trimEnd } from '../base/text.js';

/** Durations in Go's syntax, the only one Kubernetes configuration knows. */

declare const durationBrand: unique symbol;

/** A duration as Go prints it (`1h0m0s`, `1.5s`, `0s`). Made only by {@link parseDuration} and {@link durationFromNanoseconds}. */
export type GoDuration = string & { readonly [durationBrand]: true };

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

/** Go counts durations in a signed 64-bit number of nanoseconds. */
const MAX_NANOSECONDS = 2n ** 63n - 1n;

/** The largest digit count that can be within range, so that hostile input never becomes a giant integer. */
const MAX_DIGITS = 64;

/** Parses what Go's time.ParseDuration accepts: an optional sign, then `0` or decimal numbers each followed by a unit. Null otherwise. */
export function parseDuration(text: string): GoDuration | null {
  const negative = text.startsWith('-');
  const body = negative || text.startsWith('+') ? text.slice(1) : text;
  if (body === '0') return durationFromNanoseconds(0n);
  const term = /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;
  let total = 0n;
  while (term.lastIndex < body.length || body === '') {
    const match = term.exec(body);
    if (match === null) return null;
    const whole = match[1] ?? '';
    const fraction = match[2] ?? '';
    const unit = UNITS.get(match[3] ?? '');
    if (unit === undefined || whole + fraction === '' || whole.length > MAX_DIGITS) return null;
    const digits = fraction.slice(0, MAX_DIGITS);
    total += BigInt(whole || '0') * unit + (BigInt(digits || '0') * unit) / 10n ** BigInt(digits.length);
    if (total > MAX_NANOSECONDS) return null;
  }
  return durationFromNanoseconds(negative ? -total : total);
}

export function durationFromNanoseconds(nanoseconds: bigint): GoDuration {
  const negative = nanoseconds < 0n;
  const amount = negative ? -nanoseconds : nanoseconds;
  return `${negative ? '-' : ''}${printAmount(amount)}` as GoDuration;
}

export function durationNanoseconds(duration: GoDuration): bigint {
  const negative = duration.startsWith('-');
  let total = 0n;
  const body = negative ? duration.slice(1) : duration;
  for (const [, whole = '0', fraction = '', unit = 's'] of body.matchAll(/(\d+)(?:\.(\d+))?(ns|\u00b5s|ms|s|m|h)/gy)) {
    const scale = UNITS.get(unit) ?? 0n;
    total += BigInt(whole) * scale + (BigInt(fraction || '0') * scale) / 10n ** BigInt(fraction.length);
  }
  return negative ? -total : total;
}

/** In milliseconds, with a fraction where the duration has one. */
export function durationMilliseconds(duration: GoDuration): number {
  return Number(durationNanoseconds(duration)) / 1e6;
}

function printAmount(amount: bigint): string {
  if (amount === 0n) return '0s';
  if (amount < 1_000n) return `${amount.toString()}ns`;
  if (amount < 1_000_000n) return `${decimal(amount, 3)}µs`;
  if (amount < 1_000_000_000n) return `${decimal(amount, 6)}ms`;
  const minutes = amount / 60_000_000_000n;
  const seconds = `${decimal(amount % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n
    ? `${minutes.toString()}m${seconds}`
    : `${(minutes / 60n).toString()}h${(minutes % 60n).toString()}m${seconds}`;
}

/** `amount` divided by ten to the power of `places`, without trailing zeros. */
function decimal(amount: bigint, places: number): string {
  const digits = amount.toString().padStart(places + 1, '0');
  const fraction = trimEnd(digits.slice(-places), '0');
  return fraction === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`;
}
