/** Builders of commands in the libnftables JSON schema, for tests of the compiler. */
import { BUILT_IN_TIMEOUTS } from '../../src/base/conntrack-timeouts.js';
import type { NftFamily } from '../../src/native/contract.js';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Command = Readonly<Record<string, Json>>;

export const TABLE = 't';

export function add(family: NftFamily, kind: string, fields: Readonly<Record<string, Json>>): Command {
  const owner = kind === 'table' ? { family, name: TABLE } : { family, table: TABLE };
  return { add: { [kind]: { ...owner, ...fields } } };
}

/** As nft reads them. */
export function commands(list: readonly Command[]): string {
  return JSON.stringify({ nftables: list });
}

export const payload = (protocol: string, field: string): Json => ({ payload: { protocol, field } });
export const meta = (key: string): Json => ({ meta: { key } });
export const ct = (key: string, dir?: string): Json => ({ ct: dir === undefined ? { key } : { key, dir } });
export const concat = (...parts: readonly Json[]): Json => ({ concat: parts });
export const match = (left: Json, op: string, right: Json): Json => ({ match: { op, left, right } });
export const prefix = (addr: string, len: number): Json => ({ prefix: { addr, len } });
export const jump = (target: string): Json => ({ jump: { target } });
export const accept: Json = { accept: null };
export const drop: Json = { drop: null };
export const numgen = (mod: number): Json => ({ numgen: { mode: 'random', mod } });
export const fib = (flag: string): Json => ({ fib: { result: 'type', flags: flag } });

interface Names {
  readonly family: NftFamily;
  /** The header's name is the family's. */
  readonly address: string;
}

const NAMES: Readonly<Record<NftFamily, Names>> = {
  ip: { family: 'ip', address: 'ipv4_addr' },
  ip6: { family: 'ip6', address: 'ipv6_addr' },
};

/** Frontend of a packet: destination address . protocol . port. */
export const frontend = (family: NftFamily): readonly Json[] => [
  payload(family, 'daddr'),
  meta('l4proto'),
  payload('th', 'dport'),
];

/** The sets, maps and chains that the rules under test refer to. */
export function skeleton(family: NftFamily): readonly Command[] {
  const { address } = NAMES[family];
  const key = [address, 'inet_proto', 'inet_service'];
  return [
    add(family, 'table', {}),
    add(family, 'chain', { name: 'x' }),
    add(family, 'set', { name: 'frontends', type: key }),
    add(family, 'set', { name: 'addresses', type: address }),
    add(family, 'set', { name: 'networks', type: address, flags: ['interval'] }),
    add(family, 'set', { name: 'sources', type: [...key, address], flags: ['interval'] }),
    add(family, 'set', { name: 'interfaces', type: 'ifname' }),
    add(family, 'set', { name: 'protocols', type: 'inet_proto', size: 16 }),
    add(family, 'set', { name: 'marks', type: 'mark', flags: ['constant'] }),
    add(family, 'set', { name: 'ports', type: [address, 'inet_service'] }),
    add(family, 'map', { name: 'services', type: key, map: 'verdict' }),
    add(family, 'map', { name: 'by-port', type: 'inet_service', map: 'verdict' }),
    add(family, 'map', { name: 'hosts', type: address, map: address }),
    add(family, 'chain', { name: 'pre', type: 'nat', hook: 'prerouting', prio: -100, policy: 'accept' }),
    add(family, 'chain', { name: 'post', type: 'nat', hook: 'postrouting', prio: 100, policy: 'accept' }),
    add(family, 'chain', { name: 'in', type: 'filter', hook: 'input', prio: -110, policy: 'drop' }),
    add(family, 'chain', { name: 'out', type: 'route', hook: 'output', prio: 7, policy: 'accept' }),
  ];
}

/** What nft 1.0.6 takes only as text: as JSON it refuses the flag `dynamic`, makes a set of a map that yields a concatenation, and passes over the policy of a timeout. */
export function setsOfText(family: NftFamily): readonly Command[] {
  const { address } = NAMES[family];
  const key = [address, 'inet_proto', 'inet_service'];
  const map = [address, 'inet_service'];
  const flags = ['dynamic', 'timeout'];
  return [
    add(family, 'ct timeout', {
      name: 'unanswered',
      protocol: 'tcp',
      l3proto: family,
      policy: { ...BUILT_IN_TIMEOUTS.tcp, syn_sent: 1 },
    }),
    add(family, 'ct timeout', {
      name: 'asked',
      protocol: 'udp',
      l3proto: family,
      policy: { unreplied: 2, replied: 180 },
    }),
    add(family, 'map', { name: 'targets', type: key, map, comment: 'of Services' }),
    add(family, 'map', { name: 'endpoints', type: ['mark', ...key], map }),
    add(family, 'map', { name: 'slots', type: ['integer', ...key], map }),
    add(family, 'set', { name: 'seen', type: [address, ...key], flags, timeout: 3600 }),
    add(family, 'map', { name: 'affinity', type: [address, ...key], map, flags, timeout: 10800, size: 100000 }),
  ];
}

/** {@link setsOfText} in nft's own language. */
export function setsAsText(family: NftFamily): string {
  const { address } = NAMES[family];
  const key = `${address} . inet_proto . inet_service`;
  const content = `${address} . inet_service`;
  const expressions = `${family} daddr . meta l4proto . th dport`;
  const set = (kind: string, name: string, body: string): string =>
    `add ${kind} ${family} ${TABLE} ${name} { ${body} }\n`;
  const timeout = (name: string, protocol: string, policy: string): string =>
    `add ct timeout ${family} ${TABLE} ${name} { protocol ${protocol}; l3proto ${family}; policy = { ${policy} }; }\n`;
  return [
    timeout('unanswered', 'tcp', 'syn_sent : 1'),
    timeout('asked', 'udp', 'unreplied : 2, replied : 180'),
    set('map', 'targets', `type ${key} : ${content}; comment "of Services";`),
    set('map', 'endpoints', `type mark . ${key} : ${content};`),
    set('map', 'slots', `typeof meta cpu . ${expressions} : ${family} daddr . th dport;`),
    set('set', 'seen', `type ${address} . ${key}; flags dynamic,timeout; timeout 1h;`),
    set('map', 'affinity', `type ${address} . ${key} : ${content}; flags dynamic,timeout; timeout 3h; size 100000;`),
  ].join('');
}
