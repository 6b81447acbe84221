import { parseAddress, type Family, type IPAddress } from '../base/ip.js';
import { SELFTEST_PORT, type SelftestAddresses, type SelftestEndpoint } from '../control/selftest-scene.js';
import type { ProcessStatus } from '../observe/process-status.js';
import type { SelftestRow } from './print-selftest.js';

export type Tested = 'TCP' | 'UDP';
export type Ports = SelftestEndpoint['ports'];

/** Where packets are sent from. */
export interface Client {
  readonly name: string;
  /** Null: this node's own network. */
  readonly space: number | null;
  /** The interface of this node that they come in by. */
  readonly link: string | null;
  /** Null: one of this node's. */
  readonly address: (family: Family) => IPAddress | null;
}

/** An end of a wire into a network namespace, of one family. */
export interface Wire {
  readonly family: Family;
  readonly end: SelftestAddresses['client'];
}

export function clientOf(name: string, space: number, link: string, wires: readonly Wire[]): Client {
  const address = (family: Family): IPAddress | null =>
    wires.find((each) => each.family === family)?.end.inside ?? null;
  return { name, space, link, address };
}

/** For `explain --from`. */
export function senderOf({ link, address }: Client, family: Family): string {
  return link === null ? 'node' : `${address(family) ?? ''}%${link}`;
}

/** Something to try. */
export interface Trial {
  readonly what: string;
  readonly client: Client;
  readonly protocol: Tested;
  readonly address: IPAddress;
  readonly port: number;
  /** It is the test's own server that answers, with the address that it sees. */
  readonly isOwn: boolean;
  /** Whether rules are on the way, of which `explain` tells. */
  readonly isExplained: boolean;
}

/** Trials of the Service that the process serves for the test. @param port one, or one for each protocol. */
export function ownTrials(
  what: string,
  client: Client,
  address: IPAddress,
  port: number | Ports = SELFTEST_PORT,
): Trial[] {
  return (['TCP', 'UDP'] as const).map((protocol) => {
    const own = typeof port === 'number' ? port : port[protocol];
    return { what, client, protocol, address, port: own, isOwn: true, isExplained: what !== 'endpoint' };
  });
}

/** Null: the test cannot send such packets. @param to as `10.96.0.10:53/UDP`. */
export function trialTo(what: string, client: Client, to: string, isExplained: boolean): Trial | null {
  const [, host = '', port = '', protocol = ''] = /^\[?([^\]]+?)\]?:(\d+)\/(\w+)$/.exec(to) ?? [];
  const address = parseAddress(host);
  if (address === null || (protocol !== 'TCP' && protocol !== 'UDP')) return null;
  return { what, client, protocol, address, port: Number(port), isOwn: false, isExplained };
}

export const NOTHING_SENT = {
  from: '',
  to: '',
  protocol: null,
  source: null,
  milliseconds: null,
  agrees: null,
} as const;

/** Both ends of these trials are at the bridge of pods, whose packets may take a way past the rules. */
export const ON_BRIDGE = 'pods on one bridge';

/** Failures by the settings of bridges alone, where no packet was seen to be lost. */
export function bridgeRows({ observations }: Pick<ProcessStatus, 'observations'>): readonly SelftestRow[] {
  const bridges = observations.filter(({ kind }) => kind === 'bridge');
  return bridges.map(({ text }) => ({ what: ON_BRIDGE, result: 'failed', text, ...NOTHING_SENT }));
}
