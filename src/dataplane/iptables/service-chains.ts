import { endpointSize, type EndpointList } from '../../base/endpoint-list.js';
import type { IptablesEndpointRules } from '../../native/contract.js';
import { isUniform, type FrontendPlan, type NodePlan } from '../../plan/types.js';
import { commentMatch, hostText, prefixText, protocolWord, sourceMatch, type Chain } from '../xtables/rules.js';
import { CHAIN, serviceHash } from './names.js';
import { spreadChains } from './spread.js';

/**
 * The frontends of one Service port and protocol. They share two lists of endpoints at most: one for all clients, and with a
 * policy Local one for clients that have to stay on this node.
 */
export interface ServiceGroup {
  /** See serviceHash. */
  readonly hash: string;
  /** Whose settings the chains follow. */
  readonly node: NodePlan;
  /** In any order; at least one. */
  readonly frontends: readonly FrontendPlan[];
}

interface ChainNames {
  readonly cluster: string;
  readonly local: string;
  readonly external: string;
  readonly sources: string;
}

function chainNames(hash: string): ChainNames {
  return {
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    sources: `KUBE-FW-${hash}`,
  };
}

/** Whether any connection to the frontend finds an endpoint. */
export function hasEndpoints({
  endpoints,
  localEndpoints,
}: Pick<FrontendPlan, 'endpoints' | 'localEndpoints'>): boolean {
  return endpoints.count > 0 || (localEndpoints?.count ?? 0) > 0;
}

/** Whether some connections to the frontend find none. */
function isEmpty({ endpoints, localEndpoints }: FrontendPlan): boolean {
  return (localEndpoints ?? endpoints).count === 0;
}

/** The chain that decides on connections to a frontend of the group; the frontend must have endpoints. */
export function entryChain(group: ServiceGroup, frontend: FrontendPlan): string {
  const names = chainNames(group.hash);
  if (frontend.kind === 'ClusterIP') return frontend.endpoints.equals(clusterList(group)) ? names.cluster : names.local;
  return frontend.sourceRanges === null ? names.external : names.sources;
}

/** Every chain of the group. */
export function serviceChains(group: ServiceGroup): readonly Chain[] {
  const { node } = group;
  const names = chainNames(group.hash);
  const [first] = group.frontends;
  if (first === undefined) return [];
  const { servicePort, protocol, affinitySeconds } = first;
  const spread = (chain: string, endpoints: EndpointList | null): readonly Chain[] =>
    endpoints === null || endpoints.count === 0
      ? []
      : spreadChains({
          chain,
          servicePort,
          protocol,
          endpoints,
          affinitySeconds,
          weights: weightsOf(group, endpoints),
          head: group.frontends.flatMap((frontend) =>
            frontend.kind === 'ClusterIP' && entryChain(group, frontend) === chain
              ? clusterMasquerade(frontend, node)
              : [],
          ),
        });
  const make = (name: string, rules: readonly string[]): Chain => ({ table: 'nat', name, rules, owner: servicePort });
  const external = externalFrontend(group);
  const chains = [...spread(names.cluster, clusterList(group)), ...spread(names.local, localList(group))];
  if (external === undefined || !hasEndpoints(external)) return chains;
  chains.push(make(names.external, externalRules(external, names, node)));
  const restricted = group.frontends.find(({ sourceRanges }) => sourceRanges !== null);
  if (restricted?.sourceRanges) {
    const admit = restricted.sourceRanges.map((range) => `-s ${prefixText(range)} -j ${names.external}`);
    chains.push(make(names.sources, admit));
  }
  return chains;
}

/** Whether rules of the group have a match or target. */
export function needsPart(group: ServiceGroup, word: string): boolean {
  const has = (text: string): boolean => `${text} `.includes(`${word} `);
  const size = endpointSize(group.frontends[0]?.family ?? 'IPv4');
  return (
    serviceChains(group).some(({ rules }) =>
      rules.some((rule) => (typeof rule === 'string' ? has(rule) : choiceOf(rule, size).some(has))),
    ) || group.frontends.some((frontend) => [...dispatchRules(group, frontend), ...refusalRules(frontend)].some(has))
  );
}

/** Parts of rules that the addon renders. */
function choiceOf({ protocol, endpoints, affinity }: IptablesEndpointRules, size: number): readonly string[] {
  return [
    `-m ${protocol}`,
    '-j DNAT',
    ...(endpoints.length > size ? ['-m statistic'] : []),
    ...(affinity === null ? [] : ['-m recent']),
  ];
}

/** Those that some frontend has for the list; null: they are equal. */
function weightsOf({ frontends }: ServiceGroup, list: EndpointList): readonly number[] | null {
  for (const { balance, endpoints, localEndpoints } of frontends) {
    const shares = endpoints.equals(list)
      ? balance?.endpoints
      : localEndpoints?.equals(list)
        ? balance?.localEndpoints
        : null;
    if (shares && !isUniform(shares.weights)) return shares.weights;
  }
  return null;
}

function externalFrontend({ frontends }: ServiceGroup): FrontendPlan | undefined {
  return frontends.find(({ kind }) => kind !== 'ClusterIP');
}

function internalFrontend({ frontends }: ServiceGroup): FrontendPlan | undefined {
  return frontends.find(({ kind }) => kind === 'ClusterIP');
}

function clusterList(group: ServiceGroup): EndpointList {
  const frontend = externalFrontend(group) ?? internalFrontend(group);
  if (frontend === undefined) throw new RangeError(`Service port ${group.hash} has no frontends`);
  return frontend.endpoints;
}

/** The list of external traffic if its policy is Local, otherwise of internal traffic. With both Local they are the same. Null: none is. */
function localList(group: ServiceGroup): EndpointList | null {
  const external = externalFrontend(group)?.localEndpoints ?? null;
  const internal = internalFrontend(group)?.endpoints ?? null;
  return external ?? (internal?.equals(clusterList(group)) === false ? internal : null);
}

/** Source NAT of what reaches a cluster IP from elsewhere than a pod. */
function clusterMasquerade(frontend: FrontendPlan, { masqueradeAll, localDetector }: NodePlan): readonly string[] {
  const { address, protocol, port } = frontend;
  if (address === null || (!masqueradeAll && localDetector === null)) return [];
  const { before, after } =
    masqueradeAll || localDetector === null ? { before: '', after: '' } : sourceMatch(localDetector, false);
  const word = protocolWord(protocol);
  return [`${before}-d ${hostText(address)} ${after}-p ${word} -m ${word} --dport ${port} -j ${CHAIN.markMasquerade}`];
}

function externalRules(frontend: FrontendPlan, names: ChainNames, { localDetector }: NodePlan): readonly string[] {
  const { endpoints, localEndpoints } = frontend;
  if (localEndpoints === null) return [`-j ${CHAIN.markMasquerade}`, `-j ${names.cluster}`];
  const rules: string[] = [];
  if (endpoints.count > 0) {
    if (localDetector !== null) {
      const { before, after } = sourceMatch(localDetector, true);
      rules.push(`${before}${after}-j ${names.cluster}`);
    }
    const fromNode = '-m addrtype --src-type LOCAL';
    rules.push(`${fromNode} -j ${CHAIN.markMasquerade}`, `${fromNode} -j ${names.cluster}`);
  }
  if (localEndpoints.count > 0) rules.push(`-j ${names.local}`);
  return rules;
}

/** The rules that send connections on to a frontend with endpoints; none for others. */
export function dispatchRules(group: ServiceGroup, frontend: FrontendPlan): readonly string[] {
  if (!hasEndpoints(frontend)) return [];
  return [`${toFrontend(frontend, describe(frontend))} -j ${entryChain(group, frontend)}`];
}

const KIND_TEXT = {
  ClusterIP: ' cluster IP',
  ExternalIP: ' external IP',
  LoadBalancer: ' loadbalancer IP',
  NodePort: '',
} as const;

function describe({ servicePort, kind }: FrontendPlan): string {
  return servicePort + KIND_TEXT[kind];
}

/** The chain of table filter in which a frontend refuses some connections; null: it takes all. */
export function refusalChain(frontend: FrontendPlan): string | null {
  if (frontend.sourceRanges !== null) return CHAIN.proxyFirewall;
  if (!isEmpty(frontend)) return null;
  if (frontend.address === null) return CHAIN.externalNodePorts;
  return frontend.kind === 'ClusterIP' ? CHAIN.services : CHAIN.external;
}

/**
 * The rules for connections that nothing translated; none if all are translated. They begin with the rules for sources
 * that are not admitted, which are dropped whether there are endpoints or not.
 */
export function refusalRules(frontend: FrontendPlan): readonly string[] {
  const { sourceRanges, servicePort, protocol } = frontend;
  const verdict = isEmpty(frontend) ? [refusal(frontend)] : [];
  if (sourceRanges === null) return verdict;
  const others = `${servicePort} traffic not accepted by ${chainNames(serviceHash(servicePort, protocol)).sources}`;
  return [
    ...sourceRanges.flatMap((range) => verdict.map((rule) => `-s ${prefixText(range)} ${rule}`)),
    `${toFrontend(frontend, others)} -j DROP`,
  ];
}

function refusal(frontend: FrontendPlan): string {
  const isDropped = frontend.whenEmpty === 'drop';
  const what = `${describe(frontend)} has no ${isDropped ? 'local ' : ''}endpoints`;
  return `${toFrontend(frontend, what)} -j ${isDropped ? 'DROP' : rejection(frontend)}`;
}

/** A TCP reset is not rate limited as ICMP errors are (net.ipv4.icmp_ratelimit), so every client learns at once. */
function rejection({ protocol, family }: FrontendPlan): string {
  if (protocol === 'TCP') return 'REJECT --reject-with tcp-reset';
  return `REJECT --reject-with ${family === 'IPv4' ? 'icmp' : 'icmp6'}-port-unreachable`;
}

/** The match of packets to a frontend without a comment. */
export function frontendMatch({
  address,
  protocol,
  port,
}: Pick<FrontendPlan, 'address' | 'protocol' | 'port'>): string {
  const word = protocolWord(protocol);
  const destination = address === null ? '' : `-d ${hostText(address)} `;
  return `${destination}-p ${word} -m ${word} --dport ${port}`;
}

/** The match of packets to a frontend, with a comment; node ports are selected by their port alone. */
function toFrontend({ address, protocol, port }: FrontendPlan, comment: string): string {
  const word = protocolWord(protocol);
  const destination = address === null ? '' : `-d ${hostText(address)} `;
  return `${destination}-p ${word} ${commentMatch(comment)} -m ${word} --dport ${port}`;
}
