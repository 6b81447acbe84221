import { familyOf, parseAddress, parsePrefix } from '../../base/ip.js';
import { isPort } from '../../base/protocol.js';
import { parseTimestamp } from '../../base/timestamp.js';
import { durationNanoseconds, parseDuration } from '../duration.js';
import { parseHostPort } from '../host-port.js';
import { isQuantity } from '../quantity.js';

/** How a scalar is written, and what to say where it is not written so. */
interface Spelling {
  readonly in: 'string' | 'number' | 'boolean' | 'string or number';
  readonly test: (value: string) => boolean;
  readonly should: string;
}

function string(should: string, test: (value: string) => boolean): Spelling {
  return { in: 'string', test, should };
}

function always(): boolean {
  return true;
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const FORMATS = {
  string: string('text', always),
  bool: { in: 'boolean', test: always, should: 'true or false' },
  int: { in: 'number', test: always, should: 'an integer' },
  number: { in: 'number', test: always, should: 'a number' },
  duration: string('a duration such as "30s", "1h5m" or "500ms"', (value) => parseDuration(value) !== null),
  'duration, not negative': string('a duration of at least 0s', (value) => nanoseconds(value) >= 0n),
  'duration above 0': string('a duration above 0s', (value) => nanoseconds(value) > 0n),
  quantity: { in: 'string or number', test: isQuantity, should: 'a quantity such as "64Ki"' },
  ip: string('an IP address', (value) => parseAddress(value) !== null),
  ips: string('an IP address, or one of each family with a comma between', (value) =>
    isPair(value.split(',').map((entry) => parseAddress(entry.trim()))),
  ),
  cidr: string('a CIDR such as 10.0.0.0/16 or 2001:db8::/64', (value) => parsePrefix(value) !== null),
  cidrs: string('a CIDR, or one of each IP family with a comma between', (value) =>
    isPair(value.split(',').map((entry) => parsePrefix(entry))),
  ),
  'ip:port': string('IP:port', (value) => typeof parseHostPort(value) !== 'string'),
  'host:port': string('host:port or IP:port', (value) => isHostPort(value)),
  host: string('a host name or an IP address, maybe with a port', (value) => isHost(value) || isHostPort(value)),
  url: string('a URL', (value) => URL.canParse(value)),
  'https url': string('a URL that begins with https://, with a host, no user, query or fragment', isHttps),
  'http url': string('a URL that begins with http:// or https://', (value) => hasScheme(value, ['http:', 'https:'])),
  'absolute path': string('an absolute path', (value) => value.startsWith('/')),
  'unix url': string('a socket such as unix:///run/x.sock', (value) => /^unix:\/\/./.test(value)),
  'runtime socket': string('a socket such as unix:///run/x.sock', (value) =>
    /^(?:(?:unix|npipe):\/\/|\/)./.test(value),
  ),
  'bootstrap group': string('a group that begins with system:bootstrappers:', (value) =>
    /^system:bootstrappers:[a-z0-9:-]{0,255}$/.test(value),
  ),
  'dns label': string('a DNS label: at most 63 of a-z, 0-9 and "-"', (value) => LABEL.test(value)),
  'dns name': string('a DNS name: labels of a-z, 0-9 and "-" with dots between', isDnsName),
  'node name': string('a DNS name of small letters', isDnsName),
  base64: string('base64', (value) => base64Bytes(value) !== null),
  timestamp: string('a time as in RFC 3339', (value) => parseTimestamp(value) !== null),
  version: string('a version such as v1.31.0', (value) => /^v?\d{1,3}\.\d{1,4}/.test(value) || /^[a-z]/.test(value)),
  'bootstrap token': string('6 characters of a-z and 0-9, a dot, and 16 more', (value) =>
    /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(value),
  ),
  'ca hash': string('sha256: and 64 hexadecimal digits', (value) => /^sha256:[0-9a-f]{64}$/i.test(value)),
  'certificate key': string('32 bytes in hexadecimal digits', (value) => /^[0-9a-f]{64}$/i.test(value)),
} as const satisfies Readonly<Record<string, Spelling>>;

export type Format = keyof typeof FORMATS;

function nanoseconds(text: string): bigint {
  const parsed = parseDuration(text);
  return parsed === null ? -1n : durationNanoseconds(parsed);
}

/** One value or one of each family, and none that could not be read. */
function isPair(values: readonly (ReturnType<typeof parseAddress> | ReturnType<typeof parsePrefix>)[]): boolean {
  const read = values.filter((value) => value !== null);
  return read.length === values.length && new Set(read.map(familyOf)).size === read.length;
}

/** The bytes that base64 text stands for; null when it is none. */
export function base64Bytes(text: string): Uint8Array | null {
  const digits = text.replace(/[\r\n]/g, '');
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(digits)) return null;
  return Buffer.from(digits, 'base64');
}

function isDnsName(value: string): boolean {
  return value.length <= 253 && value.split('.').every((label) => LABEL.test(label));
}

function isHost(value: string): boolean {
  return parseAddress(value) !== null || isDnsName(value.toLowerCase());
}

function isHostPort(value: string): boolean {
  if (typeof parseHostPort(value) !== 'string') return true;
  const colon = value.lastIndexOf(':');
  return colon > 0 && isDnsName(value.slice(0, colon).toLowerCase()) && isPortText(value.slice(colon + 1));
}

function isPortText(value: string): boolean {
  return /^\d{1,5}$/.test(value) && isPort(Number(value));
}

function hasScheme(value: string, schemes: readonly string[]): boolean {
  return URL.canParse(value) && schemes.includes(new URL(value).protocol);
}

function isHttps(value: string): boolean {
  if (!hasScheme(value, ['https:'])) return false;
  const { host, username, password, search, hash } = new URL(value);
  return host !== '' && username + password + search + hash === '';
}
