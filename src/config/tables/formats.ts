import { familyOf, parseAddress, parsePrefix } from '../../base/ip.js';
import { isPort } from '../../base/protocol.js';
import { parseTimestamp } from '../../base/timestamp.js';
import { durationNanoseconds, parseDuration } from '../duration.js';
import { parseHostPort } from '../host-port.js';
import { isQuantity, quantityValue } from '../quantity.js';
import { BASIC, string, type ScalarValue, type Spelling } from './spelling.js';
import { spelled, type ScalarType, type Typed } from './types.js';

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const NAME = /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;

/** What files of this program's own and of other components hold; its own configuration needs the basic ones alone. */
const FORMATS = {
  ...BASIC,
  fraction: {
    in: 'number',
    test: (value) => Number(value) > 0 && Number(value) <= 1,
    should: 'a number above 0, at most 1',
  },
  'duration, not negative': string('a duration of at least 0s', (value) => nanoseconds(value) >= 0n),
  'duration above 0': string('a duration above 0s', (value) => nanoseconds(value) > 0n),
  'duration or nanoseconds': {
    in: 'string or number',
    test: (value, raw) => (typeof raw === 'number' ? /^\d+$/.test(value) : nanoseconds(value) >= 0n),
    should: 'a duration of at least 0s, or a number of nanoseconds',
  },
  amount: string('a quantity such as "64Ki", not negative', (value) => isQuantity(value) && quantityValue(value) >= 0),
  'eviction threshold': string('a quantity above 0, or from 0% to 100%', (value) =>
    value.endsWith('%') ? isPercentage(value, 0) : isQuantity(value) && quantityValue(value) > 0,
  ),
  'eviction reclaim': string('a quantity, not negative, or a percentage above 0%', (value) =>
    value.endsWith('%')
      ? isPercentage(value, Number.MIN_VALUE, Infinity)
      : isQuantity(value) && quantityValue(value) >= 0,
  ),
  percentage: string('a percentage from 0% to 100%', (value) => /^\+?\d+%$/.test(value) && isPercentage(value, 0)),
  truth: string('"true" or "false"', (value) => /^(?:1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$/.test(value)),
  'eight or more': string('a number of at least 8', (value) => /^\+?\d{1,9}$/.test(value) && Number(value) >= 8),
  'quantity text': string('a quantity such as "64Ki"', isQuantity),
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
  host: string('a host name or an IP address, maybe with a port', isHost),
  'https url': string('a URL that begins with https://, with a host, no user, query or fragment', isHttps),
  'proxy url': string('a URL that begins with http://, https:// or socks5://', (value) =>
    hasScheme(value, ['http:', 'https:', 'socks5:']),
  ),
  'http url': string('a URL that begins with http:// or https://', (value) => hasScheme(value, ['http:', 'https:'])),
  'ascii path': string('an absolute path without "." and ".." in it, in ASCII', isAsciiPath),
  'cpu list': string('CPUs such as "0-3,8"', isCpuList),
  sysctl: string('a sysctl of a namespace, or the first part of some with * at its end', isNamespacedSysctl),
  'image pattern': string(
    'an image without tag and digest, or the first part of some with /* at its end',
    isImagePattern,
  ),
  'port range': string('ports such as "30000-32767", or one and how many more', (value) => isPortRange(value)),
  'file pattern': string('a name of a file without = and comma', (value) => !/[=,]/.test(value)),
  'extended resource': string('a resource with a domain, such as example.com/gpu', isExtendedResource),
  'program name': string('a name of a program, without slash and spaces', (value) =>
    /^(?!\.{1,2}$)[^/ ]+$/.test(value),
  ),
  'image match': string('images without a scheme, such as *.example.com:5000/team', isImageMatch),
  'annotation key': string('a name of an annotation, such as "example.com/role"', (value) =>
    isLabelKey(value.toLowerCase()),
  ),
  'api group': string('a group without version, or *', (value) => value === '*' || isDnsName(value)),
  'policy version': string('"latest" or a version such as "v1.36"', (value) =>
    /^(?:latest|v1\.(?:0|[1-9]\d*))$/.test(value),
  ),
  'minor version': string('a release such as "1.35"', (value) => /^\d+\.\d+$/.test(value)),
  'absolute path': string('an absolute path', (value) => value.startsWith('/')),
  'unix url': string('a socket such as unix:///run/x.sock', (value) => /^unix:\/\/./.test(value)),
  'runtime socket': string('a socket such as unix:///run/x.sock', (value) =>
    /^(?:(?:unix|npipe|tcp):\/\/|\/)./.test(value),
  ),
  'bootstrap group': string('a group that begins with system:bootstrappers:', (value) =>
    /^system:bootstrappers:[a-z0-9:-]{0,255}$/.test(value),
  ),
  'label key': string('a name of a label, such as "example.com/role"', isLabelKey),
  'label value': string('a value of a label: at most 63 of A-Z, a-z, 0-9, "-", "_" and "."', (value) =>
    NAME.test(value),
  ),
  'dns label': string('a DNS label: at most 63 of a-z, 0-9 and "-"', (value) => LABEL.test(value)),
  'dns name': string('a DNS name: labels of a-z, 0-9 and "-" with dots between', isDnsName),
  'machine name': string('a DNS name', (value) => isDnsName(value.trim().toLowerCase())),
  'alternative name': string(
    'a DNS name, which may begin with *., or an IP address',
    (value) => parseAddress(value) !== null || isDnsName(value.toLowerCase().replace(/^\*\./, '')),
  ),
  'image repository': string('a repository of images, such as registry.example/team', isImageName),
  'file or https url': string('a path, or a URL that begins with https://', (value) =>
    /^[a-z][\w+.-]*:/i.test(value) ? hasScheme(value, ['https:']) : true,
  ),
  'certificate path': string('an absolute path that ends with .crt', (value) => /^\/.*\.crt$/.test(value)),
  timestamp: string('a time as in RFC 3339', (value) => parseTimestamp(value) !== null),
  'version or label': string('a version such as v1.31.0, or a label such as stable-1', isVersionOrLabel),
  version: string('a version such as v1.31.0', (value) => /^v?\d{1,3}\.\d{1,4}/.test(value) || /^[a-z]/.test(value)),
  'bootstrap token': string('6 characters of a-z and 0-9, a dot, and 16 more', (value) =>
    /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(value),
  ),
  'ca hash': string('sha256: and 64 hexadecimal digits', (value) => /^sha256:[0-9a-f]{64}$/i.test(value)),
  'certificate key': string('32 bytes in hexadecimal digits', (value) => /^[0-9a-f]{64}$/i.test(value)),
} as const satisfies Readonly<Record<string, Spelling>>;

export type Format = keyof typeof FORMATS;

export function scalar<F extends Format>(
  format: F,
  min?: number,
  max?: number,
): ScalarType & Typed<ScalarValue<F, (typeof FORMATS)[F]['in']>> {
  return spelled(format, FORMATS[format], min, max);
}

function nanoseconds(text: string): bigint {
  const parsed = parseDuration(text);
  return parsed === null ? -1n : durationNanoseconds(parsed);
}

/** One value or one of each family, and none that could not be read. */
function isPair(values: readonly (ReturnType<typeof parseAddress> | ReturnType<typeof parsePrefix>)[]): boolean {
  const read = values.filter((value) => value !== null);
  return read.length === values.length && new Set(read.map(familyOf)).size === read.length;
}

function isPortRange(value: string): boolean {
  const [, first, sign, other = first] = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(value.trim()) ?? [];
  const last = sign === '+' ? Number(first) + Number(other) : Number(other);
  return first !== undefined && Number(first) <= last && last <= 65_535;
}

function isDnsName(value: string): boolean {
  return value.length <= 253 && value.split('.').every((label) => LABEL.test(label));
}

function isLabelKey(value: string): boolean {
  const [name = '', domain, ...more] = value.split('/').reverse();
  return more.length === 0 && NAME.test(name) && (domain === undefined || isDnsName(domain));
}

function isExtendedResource(value: string): boolean {
  const [domain = ''] = value.split('/');
  return (
    isLabelKey(value) &&
    value.includes('/') &&
    !/(?:^|\.)kubernetes\.io$/.test(domain) &&
    !value.startsWith('requests.')
  );
}

function isImageMatch(value: string): boolean {
  return (
    value !== '' && !value.includes('://') && URL.canParse(`https://${value.replaceAll('*', 'x')}`) && !/\s/.test(value)
  );
}

function isPercentage(value: string, least: number, most = 100): boolean {
  const number = Number(value.slice(0, -1));
  return /^[-+]?[\d.]/.test(value) && number >= least && number <= most;
}

function isAsciiPath(value: string): boolean {
  const [first, ...names] = value.split('/');
  const isClean = names.every((name) => !['', '.', '..'].includes(name));
  return value === '/' || (first === '' && isClean && /^[\x01-\x7f]*$/.test(value));
}

function isCpuList(value: string): boolean {
  return value.split(',').every((entry) => {
    const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(entry) ?? [];
    return first !== undefined && Number(first) <= Number(last);
  });
}

/** As Linux has them: those of System V's IPC by name, the others by where they are. */
const SYSCTLS = ['sem', 'shm', 'shmall', 'shmmax', 'shmmni', 'shm_rmid_forced', 'msg', 'msgmax', 'msgmnb', 'msgmni'];

function isNamespacedSysctl(value: string): boolean {
  if (
    value.length > 253 ||
    !/^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9*](?:[-_a-z0-9]*[a-z0-9*])?$/.test(value)
  )
    return false;
  const isPattern = value.endsWith('*');
  const name = (isPattern ? value.slice(0, -1) : value).replaceAll('/', '.');
  if (name.includes('*')) return false;
  return /^(?:net|fs\.mqueue)\./.test(name) || SYSCTLS.some((each) => name === `kernel.${each}`);
}

const IMAGE_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;

function isImagePattern(value: string): boolean {
  if (value.endsWith('/*')) return value.length > 2 && !/[*\s]/.test(value.slice(0, -1));
  return isImageName(value);
}

function isImageName(value: string): boolean {
  const [first = '', ...rest] = value.split('/');
  const isRegistry = rest.length > 0 && /^(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[\da-fA-F:]+\])(?::\d+)?$/.test(first);
  return (isRegistry || IMAGE_PART.test(first)) && rest.every((part) => IMAGE_PART.test(part));
}

/** Labels are names of files that say which version is current. */
function isVersionOrLabel(value: string): boolean {
  return (
    /^v?(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:[-+][\w.+-]+)?$/.test(value) ||
    /^(?:k8s-)?(?:(?:release|ci|ci-cross)\/)?(?:latest|stable)(?:-[1-9]\d*(?:\.[1-9]\d*)?)?$/.test(value) ||
    /^(?:release|ci|ci-cross)\/[\w.+-]+$/.test(value)
  );
}

/** Names have no capital letters, addresses may. */
function isHost(value: string): boolean {
  if (parseAddress(value) !== null || typeof parseHostPort(value) !== 'string') return true;
  return isDnsName(value) || (isHostPort(value) && value === value.toLowerCase());
}

function isHostPort(value: string): boolean {
  if (typeof parseHostPort(value) !== 'string') return true;
  const colon = value.lastIndexOf(':');
  return colon > 0 && isDnsName(value.slice(0, colon).toLowerCase()) && isPortText(value.slice(colon + 1));
}

function isPortText(value: string): boolean {
  return /^\d{1,5}$/.test(value) && isPort(Number(value));
}

/** Programs of Kubernetes neither strip spaces from a URL nor add slashes to it, as URL does. */
function hasScheme(value: string, schemes: readonly string[]): boolean {
  if (value !== value.trim() || !URL.canParse(value)) return false;
  const { protocol } = new URL(value);
  return schemes.includes(protocol) && value.slice(protocol.length).startsWith('//');
}

function isHttps(value: string): boolean {
  if (!hasScheme(value, ['https:'])) return false;
  const { host, username, password, search, hash } = new URL(value);
  return host !== '' && username + password + search + hash === '';
}
