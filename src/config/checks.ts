import { parseAddress, parsePrefix } from '../base/ip.js';
import { durationNanoseconds, type GoDuration } from './duration.js';
import { lockedGateProblems } from './gates.js';
import { isEndpointName, parseHnsNetwork } from './hns-network.js';
import { parseHostPort } from './host-port.js';
import type { Flaw } from './tables/types.js';

/** What is wrong with single values of KubeProxyConfiguration, in the words of kube-proxy's validation. */

/** The word for "the node's own primary addresses" in nodePortAddresses. */
export const PRIMARY = 'primary';

/** Words that stand for prefixes there, of both families. */
export const NODE_PORT_WORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['localhost', ['127.0.0.0/8', '::1/128']],
  ['all', ['0.0.0.0/0', '::/0']],
]);

/** Those that the API source reads. */
export const CONTENT_TYPES = ['application/vnd.kubernetes.protobuf', 'application/json'] as const;

export function within(min: number, max: number): (value: number) => string | null {
  return (value) => (value >= min && value <= max ? null : `must be within the range [${min}, ${max}]`);
}

export function atLeastZero(value: number): string | null {
  return value >= 0 ? null : 'must be greater than or equal to 0';
}

export function notNegative(duration: GoDuration): string | null {
  return durationNanoseconds(duration) >= 0n ? null : 'must be greater than or equal to 0';
}

export function positive(duration: GoDuration): string | null {
  return durationNanoseconds(duration) > 0n ? null : 'must be greater than 0';
}

/** In nanoseconds; the kernel counts in ticks, with 31 bits. */
const MAX_IPVS_TIMEOUT = 2_147_483n * 1_000_000_000n;

export function countable(duration: GoDuration): string | null {
  const isCountable = durationNanoseconds(duration) <= MAX_IPVS_TIMEOUT;
  return isCountable ? null : 'must be at most 596h31m23s, the maximum of ip_vs';
}

export function schedulerName(name: string): string | null {
  return /^[^\s\p{C}]{0,15}$/u.test(name) && Buffer.byteLength(name) <= 15
    ? null
    : 'is no scheduler name of ip_vs: at most 15 bytes, without blanks';
}

export function prefixes(entries: readonly string[] | null): readonly Flaw[] {
  const problem = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  return (entries ?? []).flatMap((value, index) =>
    parsePrefix(value) === null ? [{ at: `[${index}]`, rule: 'value', value, problem }] : [],
  );
}

export function nodePortAddresses(given: readonly string[] | null): readonly Flaw[] {
  const words: readonly unknown[] = [PRIMARY, ...NODE_PORT_WORDS.keys()];
  return prefixes(given)
    .filter(({ value }) => !words.includes(value))
    .map((flaw) => ({ ...flaw, problem: `${flaw.problem}, or one of ${words.join(', ')}` }));
}

export function address(text: string): string | null {
  return parseAddress(text) === null ? 'not a valid textual representation of an IP address' : null;
}

export function hostPort(text: string): string | null {
  const parsed = parseHostPort(text);
  return typeof parsed === 'string' ? parsed : null;
}

/** Only a flag can empty it, which switches health checks off; metrics have no such switch. */
export function healthzAddress(text: string): string | null {
  return text === '' ? null : hostPort(text);
}

/** What the API server may answer in. kube-proxy knows no more of them, and then fails at every request. */
export function contentType(type: string): string | null {
  return type === '' || isContentType(type, CONTENT_TYPES) ? null : A_CONTENT_TYPE;
}

export function contentTypes(types: string): readonly Flaw[] {
  const accepted = types === '' ? [] : types.split(',');
  return accepted
    .filter((entry) => !isContentType(entry, [...CONTENT_TYPES, 'application/*', '*/*']))
    .map((entry) => ({ at: '', rule: 'value', value: entry.trim(), problem: A_CONTENT_TYPE }));
}

const A_CONTENT_TYPE = `must be ${CONTENT_TYPES.join(' or ')}`;

function isContentType(entry: string, known: readonly string[]): boolean {
  const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
  return known.includes(type) && !parameters.some((parameter) => parameter.startsWith('as='));
}

export function lockedGates(gates: Readonly<Record<string, boolean>>): readonly Flaw[] {
  return lockedGateProblems(gates).map((problem) => ({ at: '', rule: 'value', value: null, problem }));
}

export function hnsNetwork(name: string): string | null {
  return name === '' || parseHnsNetwork(name) !== null
    ? null
    : 'must be the name of an HNS network, the beginning of one as "vpcbr*", or a type as "type=Overlay"';
}

export function hnsSource(text: string): string | null {
  return text === '' || parseAddress(text) !== null || isEndpointName(text)
    ? null
    : 'must be an IP address or the name of an HNS endpoint';
}

interface FileVerbosity {
  readonly filePattern: string;
  readonly verbosity: number;
}

export const verbosity = within(0, 2 ** 31 - 1);

export function fileVerbosities(entries: readonly FileVerbosity[]): readonly Flaw[] {
  return entries.flatMap(({ filePattern, verbosity: level }, index): readonly Flaw[] => {
    const at = `[${index}].filePattern`;
    const problem = verbosity(level);
    return [
      ...(filePattern === '' ? [{ at, rule: 'required', value: null, problem: 'must not be empty' } as const] : []),
      ...(/[=,]/.test(filePattern)
        ? [{ at, rule: 'value', value: filePattern, problem: 'must not contain equal signs or commas' } as const]
        : []),
      ...(problem === null ? [] : [{ at: `[${index}].verbosity`, rule: 'value', value: level, problem } as const]),
    ];
  });
}
