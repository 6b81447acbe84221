import { parsePrefix, prefixContains } from '../../base/ip.js';
import { EFFECTS, PASSING_TARGETS } from './nft-rules.js';
import { NO_MATCH, type HookedPacket, type Judged, type Match, type Verdict } from './packet.js';

/** Takes one option and its value: whether the packet matches it. Absent: unknown. */
const OPTIONS: Readonly<Record<string, (value: string, packet: HookedPacket) => Match>> = {
  '-s': (value, { source }) => within(value, source),
  '-d': (value, { destination }) => within(value, destination),
  '-i': (value, { inputInterface }) => named(value, inputInterface),
  '-o': (value, { outputInterface }) => named(value, outputInterface),
  '-p': (value, { protocol }) => (protocol === null ? null : protocol.toLowerCase() === value),
  '--sport': (value, { sourcePort }) => inPorts(value, sourcePort),
  '--sports': (value, { sourcePort }) => inPorts(value, sourcePort),
  '--dport': (value, { port }) => inPorts(value, port),
  '--dports': (value, { port }) => inPorts(value, port),
  '--dst-type': (value, { isToNode }) => (value === 'LOCAL' ? isToNode : null),
  '--ctstate': (value, packet) => inStates(value, packet),
  '--state': (value, packet) => inStates(value, packet),
};
/** They do not restrict packets: the names of matches, whose options are what counts. */
const NEUTRAL = ['-m', '--comment'];
const TAKE_NOTHING = ['--log-tcp-options', '--log-ip-options', '--log-uid', '--log-tcp-sequence'];

/** Judges rules as iptables-save prints them, without their chain. */
export function judgeIptablesRule(rule: string, packet: HookedPacket): Judged {
  const words = wordsOf(rule);
  let isSure = true;
  for (let place = 0; place < words.length; place++) {
    const isInverted = words[place] === '!';
    if (isInverted) place++;
    const option = words[place] ?? '';
    if (option === '-j' || option === '-g')
      return { match: isSure ? true : null, verdict: verdictOf(option, words.slice(place + 1)) };
    if (TAKE_NOTHING.includes(option)) continue;
    const value = words[++place] ?? '';
    if (NEUTRAL.includes(option)) continue;
    const match = OPTIONS[option]?.(value, packet) ?? null;
    if (match === null) isSure = false;
    else if (match === isInverted) return NO_MATCH;
  }
  return { match: isSure ? true : null, verdict: { type: 'continue' } };
}

function verdictOf(option: '-j' | '-g', [target = '', ...options]: readonly string[]): Verdict {
  if (option === '-g') return { type: 'goto', chain: target };
  if (target === 'ACCEPT') return { type: 'accept' };
  if (target === 'DROP') return { type: 'drop' };
  if (target === 'REJECT') return { type: 'reject' };
  if (target === 'RETURN') return { type: 'return' };
  if (target === 'NOTRACK' || (target === 'CT' && options.includes('--notrack'))) return { type: 'untrack' };
  const effect = EFFECTS[target];
  if (effect !== undefined) return { type: effect };
  if (PASSING_TARGETS.has(target)) return { type: 'continue' };
  return /^(?:NFQUEUE|QUEUE|SYNPROXY|STEAL)$/.test(target) ? { type: 'unknown' } : { type: 'jump', chain: target };
}

/** Words of a line, of which some are quoted. */
function wordsOf(rule: string): readonly string[] {
  return [...rule.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

function within(value: string, address: HookedPacket['source']): Match {
  const prefix = parsePrefix(value);
  return prefix === null || address === null ? null : prefixContains(prefix, address);
}

function named(value: string, name: string | null): Match {
  if (name === null) return null;
  return value.endsWith('+') ? name.startsWith(value.slice(0, -1)) : name === value;
}

function inPorts(value: string, port: number | null): Match {
  if (port === null) return null;
  return value.split(',').some((range) => {
    const [first = '', last = first] = range.split(':');
    return port >= Number(first) && port <= Number(last);
  });
}

function inStates(value: string, { isTracked, isTranslated, isAnswer }: HookedPacket): Match {
  const states = value.split(',');
  if (!isTracked) return states.includes('INVALID');
  return states.includes(isAnswer ? 'ESTABLISHED' : 'NEW') || (isTranslated && states.includes('DNAT'));
}
