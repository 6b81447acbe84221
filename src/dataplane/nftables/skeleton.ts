import {
  addressFromBytes,
  addressLength,
  prefixAddress,
  prefixLength,
  type Family,
  type IPPrefix,
} from '../../base/ip.js';
import type { NftFamily } from '../../native/contract.js';
import type { LocalDetector, NodePlan } from '../../plan/types.js';
import {
  address,
  concat,
  countBy,
  differs,
  dport,
  drop,
  goto,
  includes,
  jump,
  masquerade,
  match,
  meta,
  setMark,
  sport,
  tcpFlags,
  update,
  vmap,
  type Chain,
  type ChainHook,
  type Expression,
  type Rule,
  type Statement,
} from './json.js';
import { affinityChains } from './affinity/chains.js';
import { retryChainOfNode, type RetryTimeouts } from './retry.js';
import { CHAIN, COUNTED, NFT_FAMILY, SET, countChain, countedSet } from './names.js';

/** Priorities by their names in nft(8); kube-proxy's, see behaviour NF-01 to NF-05. */
const BEFORE_DNAT = -110;
const DSTNAT = -100;
const FILTER = 0;
const SRCNAT = 100;

/**
 * Every chain that does not depend on a Service. The README of this folder draws them.
 *
 * @param counts whether packets are counted that are refused or dropped.
 * @param timeouts null: this kernel has none.
 */
export function skeletonChains(node: NodePlan, counts: boolean, timeouts: RetryTimeouts | null): readonly Chain[] {
  const family = NFT_FAMILY[node.family];
  const end = counts ? countFirst : atOnce;
  return [
    base(CHAIN.preroutingBeforeDnat, 'filter', 'prerouting', BEFORE_DNAT, [[hasNoFlow, jump(CHAIN.checkConnections)]]),
    base(CHAIN.outputBeforeDnat, 'filter', 'output', BEFORE_DNAT, [[hasNoFlow, jump(CHAIN.checkConnections)]]),
    base(CHAIN.natPrerouting, 'nat', 'prerouting', DSTNAT, [[jump(CHAIN.dispatch)]]),
    base(CHAIN.natOutput, 'nat', 'output', DSTNAT, [[jump(CHAIN.dispatch)]]),
    base(CHAIN.input, 'filter', 'input', FILTER, [
      // Endpoints on the node's own addresses leave no trace in postrouting. Only the first packet counts, as there. Otherwise a
      // client that keeps trying a removed endpoint would be remembered again after it was forgotten.
      [isNew, wasTranslated, isFirst, jump(CHAIN.rememberClients)],
      [isNew, jump(CHAIN.checkNodePorts)],
      [isNew, jump(CHAIN.checkFrontends)],
    ]),
    base(CHAIN.forward, 'filter', 'forward', FILTER, transit),
    base(CHAIN.output, 'filter', 'output', FILTER, transit),
    base(CHAIN.natPostrouting, 'nat', 'postrouting', SRCNAT, [
      [wasTranslated, jump(CHAIN.rememberClients)],
      [jump(CHAIN.masquerade)],
    ]),
    regular(CHAIN.checkConnections, [
      // A SYN is of a new connection, which may have the port of one that was reset.
      [
        isTCP,
        match({ '&': [tcpFlags, 'syn'] }, 0),
        match(connectionKey(family), `@${SET.resetting}`),
        goto(CHAIN.resetConnections),
      ],
      [isNew, goto(CHAIN.checkSources)],
    ]),
    // When there is no room to note it the packet is reset all the same: then its rule ends, and the next one follows.
    regular(CHAIN.resetConnections, [[update(SET.wereReset, connectionKey(family))], [resetTCP]]),
    regular(CHAIN.checkSources, [[match(frontendKey(family), `@${SET.restricted}`), goto(CHAIN.admitSources)]]),
    regular(CHAIN.admitSources, [...admitSources(node.family), [end(SET.restricted)]]),
    retryChainOfNode(node, timeouts),
    regular(CHAIN.dispatch, dispatch(node, family)),
    regular(CHAIN.checkFrontends, [
      [match(frontendKey(family), `@${SET.dropped}`), end(SET.dropped)],
      [match(frontendKey(family), `@${SET.rejected}`), end(SET.rejected)],
    ]),
    regular(CHAIN.checkNodePorts, [...refuseDatagrams(node, family), ...checkNodePorts(node, family, end)]),
    ...(hasListener(node)
      ? [regular(CHAIN.refuseOnLoopback, [[countBy(SET.rejectedOnLoopback, meta('l4proto'))], [goto(CHAIN.refuse)]])]
      : []),
    regular(CHAIN.checkClusterAddresses, [
      [match(address(family, 'daddr'), `@${SET.clusterAddresses}`), goto(CHAIN.refuse)],
      ...node.serviceCIDRs.map((cidr) => [inPrefix(address(family, 'daddr'), cidr), drop]),
    ]),
    // A TCP reset is not rate limited as ICMP errors are (net.ipv4.icmp_ratelimit), so every client learns at once.
    regular(CHAIN.refuse, [[isTCP, resetTCP], [{ reject: null }]]),
    ...(counts ? countChains(family) : []),
    ...affinityChains(family),
    regular(CHAIN.masquerade, masqueradeRules(node, family)),
  ];
}

const isNew: Statement = includes({ ct: { key: 'state' } }, 'new');
/** The first packet of a flow. To conntrack that may also be one from the middle of a connection, or none (net.netfilter.nf_conntrack_tcp_loose). */
const hasNoFlow: Statement = includes({ ct: { key: 'state' } }, ['invalid', 'new']);
const isTCP: Statement = match(meta('l4proto'), 'tcp');
const resetTCP: Statement = { reject: { type: 'tcp reset' } };
const wasTranslated: Statement = includes({ ct: { key: 'status' } }, 'dnat');
/** Conntrack confirms a connection when its first packet has passed all hooks; a connection without answers stays new for longer. */
const isFirst: Statement = match({ '&': [{ ct: { key: 'status' } }, 'confirmed'] }, 0);
const transit: readonly Rule[] = [
  [isNew, jump(CHAIN.checkFrontends)],
  [isNew, jump(CHAIN.checkClusterAddresses)],
];

/** Marks what needs source NAT on its way to a cluster IP, then sends every connection to the class chain of its frontend. */
function dispatch(node: NodePlan, family: NftFamily): readonly Rule[] {
  const toCluster = match(address(family, 'daddr'), `@${SET.clusterAddresses}`);
  const mark = markForMasquerade(node);
  const rules: Rule[] = [];
  if (node.masqueradeAll) rules.push([toCluster, mark]);
  else if (node.localDetector !== null) rules.push([toCluster, notFromPod(node.localDetector, family), mark]);
  rules.push([vmap(frontendKey(family), SET.frontends)]);
  for (const guard of nodePortGuards(node, family)) {
    rules.push([...guard, vmap(nodePortKey, SET.nodePortFrontends)]);
  }
  return rules;
}

function checkNodePorts(node: NodePlan, family: NftFamily, end: End): readonly Rule[] {
  return nodePortGuards(node, family).flatMap((guard): readonly Rule[] => [
    [match(nodePortKey, `@${SET.droppedNodePorts}`), ...guard, end(SET.droppedNodePorts)],
    [match(nodePortKey, `@${SET.rejectedNodePorts}`), ...guard, end(SET.rejectedNodePorts)],
  ]);
}

/** UDP and SCTP on loopback, which the listeners of this process do not serve. */
function refuseDatagrams(node: NodePlan, family: NftFamily): readonly Rule[] {
  if (!hasListener(node)) return [];
  const toLoopback = match(address(family, 'daddr'), LOOPBACK[family]);
  return [[toLoopback, match(nodePortKey, `@${SET.datagramNodePorts}`), goto(CHAIN.refuseOnLoopback)]];
}

function hasListener({ nodePortListener }: NodePlan): boolean {
  return nodePortListener !== null;
}

const LOOPBACK: Readonly<Record<NftFamily, Expression>> = {
  ip: { prefix: { addr: '127.0.0.0', len: 8 } },
  ip6: '::1',
};

/**
 * Looks for a source as a single address, then in a prefix of each length, see {@link packSource}: first of the lengths that most
 * ranges have, whole bytes and half ones. One of length 0 restricts nobody.
 *
 * nft lists no constants in a key that is looked up, so the length is a port that is masked with nothing and combined with it.
 * The same of an address, for a key of 40 bytes instead of 44, nft does not load from its own listing in IPv6.
 */
function admitSources(of: Family): readonly Rule[] {
  const family = NFT_FAMILY[of];
  const frontend = [address(family, 'daddr'), meta('l4proto'), dport];
  const saddr = address(family, 'saddr');
  const size = addressLength(of);
  const odd = (length: number): number => Number(length % 8 > 0) + Number(length % 4 > 0);
  const lengths = Array.from({ length: 8 * size - 1 }, (_, index) => 8 * size - 1 - index);
  const prefixes = lengths
    .sort((one, other) => odd(one) - odd(other))
    .map((length): Rule => {
      const mask = new Uint8Array(size).fill(0xff, 0, length >> 3);
      mask[length >> 3] = 0xff00 >> (length & 7);
      const source = [{ '&': [saddr, addressFromBytes(mask)] }, { '|': [{ '&': [dport, 0] }, length] }] as const;
      return [match(concat(...source, ...frontend), `@${SET.admitted}`), { return: null }];
    });
  return [[match(concat(saddr, ...frontend), `@${SET.admittedAddresses}`), { return: null }], ...prefixes];
}

/** A set of frontends whose packets get no further. */
type Refusing = (typeof COUNTED)[number]['of'];

/** The statement that ends the way of packets to the frontends of a set. */
type End = (of: Refusing) => Statement;

const atOnce: End = (of) => (of === SET.rejected || of === SET.rejectedNodePorts ? goto(CHAIN.refuse) : drop);
const countFirst: End = (of) => goto(countChain(of));

/** The verdict is a rule of its own: a packet that there is no room to count for goes the same way. */
function countChains(family: NftFamily): readonly Chain[] {
  return COUNTED.map(({ of }) => {
    const key = of === SET.rejectedNodePorts || of === SET.droppedNodePorts ? nodePortKey : frontendKey(family);
    return regular(countChain(of), [[countBy(countedSet(of), key)], [atOnce(of)]]);
  });
}

/**
 * The conditions for a node port address: local, not loopback, and in one of the configured prefixes. The rules ask the
 * kernel for local addresses, so addresses that come and go need no change of rules.
 */
function nodePortGuards(node: NodePlan, family: NftFamily): readonly (readonly Statement[])[] {
  const daddr = address(family, 'daddr');
  const local: readonly Statement[] = [match(fibType('daddr'), 'local'), differs(daddr, LOOPBACK[family])];
  return node.nodePortPrefixes?.map((prefix) => [inPrefix(daddr, prefix), ...local]) ?? [local];
}

function masqueradeRules(node: NodePlan, family: NftFamily): readonly Rule[] {
  const bit = node.masqueradeMark;
  return [
    // The bit is cleared so that a packet that is encapsulated and comes by again is not masqueraded twice.
    [differs({ '&': [meta('mark'), bit] }, 0), setMark({ '^': [meta('mark'), bit] }), masquerade],
    [wasTranslated, match(concat(address(family, 'saddr'), address(family, 'daddr')), `@${SET.hairpin}`), masquerade],
  ];
}

export function markForMasquerade(node: NodePlan): Statement {
  return setMark({ '|': [meta('mark'), node.masqueradeMark] });
}

export function fibType(field: 'saddr' | 'daddr'): Expression {
  return { fib: { result: 'type', flags: [field] } };
}

function frontendKey(family: NftFamily): Expression {
  return concat(address(family, 'daddr'), meta('l4proto'), dport);
}

/** A connection by its client and what that asked for. */
function connectionKey(family: NftFamily): Expression {
  return concat(address(family, 'saddr'), sport, address(family, 'daddr'), meta('l4proto'), dport);
}

const nodePortKey: Expression = concat(meta('l4proto'), dport);

export function fromPod(detector: LocalDetector, family: NftFamily): Statement {
  return match(...detectorOperands(detector, family));
}

function notFromPod(detector: LocalDetector, family: NftFamily): Statement {
  return differs(...detectorOperands(detector, family));
}

function detectorOperands(detector: LocalDetector, family: NftFamily): [Expression, Expression] {
  switch (detector.type) {
    case 'source-prefix':
      return [address(family, 'saddr'), prefixValue(detector.prefix)];
    case 'input-interface':
      return [meta('iifname'), detector.name];
    case 'input-interface-prefix':
      return [meta('iifname'), `${detector.prefix}*`];
  }
}

function inPrefix(left: Expression, prefix: IPPrefix): Statement {
  return match(left, prefixValue(prefix));
}

/** A prefix of full length is the address itself: nft lists it so. */
function prefixValue(prefix: IPPrefix): Expression {
  const addr = prefixAddress(prefix);
  const len = prefixLength(prefix);
  return len === (addr.includes(':') ? 128 : 32) ? addr : { prefix: { addr, len } };
}

function base(
  name: string,
  type: ChainHook['type'],
  hook: ChainHook['hook'],
  prio: number,
  rules: readonly Rule[],
): Chain {
  return { name, hook: { type, hook, prio }, rules };
}

function regular(name: string, rules: readonly Rule[]): Chain {
  return { name, hook: null, rules };
}
