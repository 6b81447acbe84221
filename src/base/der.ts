/** DER, as much of it as certificates need (ITU-T X.690). */
export type Der = Uint8Array;

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;

export function element(tag: number, ...parts: readonly Der[]): Der {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

export const sequence = (...parts: readonly Der[]): Der => element(SEQUENCE, ...parts);
export const set = (...parts: readonly Der[]): Der => element(SET, ...parts);
export const octets = (content: Der): Der => element(OCTET_STRING, content);
export const text = (content: string): Der => element(UTF8_STRING, Buffer.from(content));
export const truth = (): Der => Buffer.from([0x01, 0x01, 0xff]);

/** @param unused bits at the end that do not count. */
export function bits(content: Der, unused = 0): Der {
  return element(BIT_STRING, Buffer.from([unused]), content);
}

/** A whole number that is not negative, its highest byte first. */
export function integer(bytes: Der): Der {
  const isSigned = ((bytes[0] ?? 0) & 0x80) !== 0;
  return element(INTEGER, ...(isSigned ? [Buffer.from([0])] : []), bytes);
}

/** @param dotted such as `2.5.4.3`. */
export function objectIdentifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(OBJECT_IDENTIFIER, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** @param milliseconds since the epoch; fractions of a second do not count. */
export function time(milliseconds: number): Der {
  const digits = new Date(milliseconds).toISOString().replace(/[-:T]|\.\d+/g, '');
  // RFC 5280 §4.1.2.5: the short form up to 2049.
  const isShort = Number(digits.slice(0, 4)) < 2050;
  return element(isShort ? UTC_TIME : GENERALIZED_TIME, Buffer.from(isShort ? digits.slice(2) : digits));
}

function lengthOf(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

function base128(value: number): readonly number[] {
  const groups = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) groups.unshift(0x80 | (rest % 128));
  return groups;
}
