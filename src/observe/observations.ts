import { familyOf, prefixContains, prefixWithin, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import type { FlowTableSize, NetworkFacts } from '../host/host.js';

/**
 * Something outside our rules that stands in a packet's way, or may. It is no health of its own: rules are as they should be, and another process would find
 * the same.
 */
export interface Observation {
  readonly kind:
    | 'forwarding' // the kernel forwards nothing
    | 'conntrack' // the table of connections is nearly full, or was full
    | 'cluster-cidr' // the Node's pods are not in clusterCIDR
    | 'node' // there is no Node of this name
    | 'node-ports' // node ports have no address
    | 'listener' // an address of ours is not served
    | 'log' // a log file loses lines
    | 'source' // a manifest is not used
    | 'api-server' // objects cannot be read
    | 'configuration' // a changed configuration is refused
    | 'sync' // rules cannot be written
    | 'node-fault' // kernel or programs lack what the mode needs
    | 'route' // no route
    | 'reverse-path' // rp_filter
    | 'bridge' // packets between pods do not meet netfilter
    | 'route-localnet'
    | 'endpoint' // an endpoint answered none of its last connection attempts
    | 'object' // an object of the cluster is not used
    | 'conflict' // two Services claim an address and port
    | 'foreign-rules'; // rules of others drop or refuse
  /** `warning`: packets are lost, or health checks fail; `note`: it may explain something. */
  readonly severity: 'warning' | 'note';
  /** With the value that was seen. */
  readonly text: string;
  /** What to do about it. */
  readonly remedy: string;
}

/** An address of the configuration that is not served. */
export interface SilentListener {
  /** Such as `health checks`. */
  readonly what: string;
  readonly address: string;
  readonly port: number;
  /** Why, as the system says. */
  readonly reason: string;
}

/** A client of our listeners that takes more than its share. */
export interface CrowdingClient {
  /** Its address; null: several that are not named. */
  readonly client: string | null;
  /** How often one of its connections had to wait, or was closed. */
  readonly times: number;
}

/** A log file that loses lines. */
export interface LogFault {
  /** With dashes. */
  readonly flag: string;
  readonly reason: string;
}

/** What observations of the node are made of. */
export interface NodeFacts {
  /** Those that Services have addresses of: no one misses the others. */
  readonly families: readonly Family[];
  /** Null: the platform does not say. */
  readonly network: NetworkFacts | null;
  readonly flows: FlowTableSize | null;
  readonly nodeName: string;
  /** Whether the sources have said all they know. */
  readonly ready: boolean;
  /** Null: there is no Node of this name. */
  readonly podCIDRs: readonly IPPrefix[] | null;
  /** Null: pods are recognised by something else. */
  readonly clusterCIDRs: readonly IPPrefix[] | null;
  /** Where node ports answer, by family, and whether there are any; null: on every address. */
  readonly nodePorts: readonly { readonly family: Family; readonly prefixes: readonly IPPrefix[] | null }[];
  readonly localAddresses: readonly IPAddress[];
  readonly listeners: readonly SilentListener[];
  readonly crowding: readonly CrowdingClient[];
  readonly logs: readonly LogFault[];
  /** Manifests that are not used, and why. */
  readonly sourceErrors: readonly string[];
}

/** The table counts as nearly full from here. */
const NEARLY_FULL = 0.9;

/** What stands in the way of packets on this node, warnings first. */
export function observeNode(seen: NodeFacts): readonly Observation[] {
  const all = [
    ...ofSources(seen),
    ...seen.listeners.map(ofListener),
    ...seen.crowding.map(ofCrowding),
    ...seen.logs.map(ofLog),
    ...ofForwarding(seen),
    ...ofFlows(seen),
    ...ofCluster(seen),
  ];
  return [
    ...all.filter(({ severity }) => severity === 'warning'),
    ...all.filter(({ severity }) => severity === 'note'),
  ];
}

function ofListener({ what, address, port, reason }: SilentListener): Observation {
  return {
    kind: 'listener',
    severity: 'warning',
    text: `${what} are not served on ${address} port ${port}: ${reason}`,
    remedy: `see who has the port (ss -ltnp 'sport = ${port}'), or configure another address; retried every 5 s`,
  };
}

function ofCrowding({ client, times }: CrowdingClient): Observation {
  return {
    kind: 'listener',
    severity: 'note',
    text: `${client ?? 'other clients'} took more than a client's share of the health and metrics addresses: connections waited or were closed ${times} times`,
    remedy: 'find out what sends so much (ss -tn, tcpdump), and keep it from these addresses; others are served',
  };
}

function ofLog({ flag, reason }: LogFault): Observation {
  return {
    kind: 'log',
    severity: 'warning',
    text: `${flag}: lines are lost: ${reason}`,
    remedy: 'free the disk, or make its directory writable; each line is tried',
  };
}

/** Of so many files it is said. */
const MOST_FILES = 10;

function ofSources({ sourceErrors }: NodeFacts): readonly Observation[] {
  const more = sourceErrors.length - MOST_FILES;
  const texts = sourceErrors.slice(0, MOST_FILES);
  return [...texts, ...(more > 0 ? [`${more} more files have such errors`] : [])].map((text) => ({
    kind: 'source',
    severity: 'warning',
    text: `a manifest is not used, its last good version stays: ${text}`,
    remedy: 'correct the file (pointsman plan --manifests FILE lists its errors); it is reread on change',
  }));
}

const SWITCHES: Readonly<Record<Family, string>> = {
  IPv4: 'net.ipv4.ip_forward',
  IPv6: 'net.ipv6.conf.all.forwarding',
};

function ofForwarding({ network, families }: NodeFacts): readonly Observation[] {
  return families.flatMap((family) => (network === null ? [] : forwardingOf(network, family)));
}

/** Of one family. */
export function forwardingOf(
  { forwarding, notForwarding }: Pick<NetworkFacts, 'forwarding' | 'notForwarding'>,
  family: Family,
): readonly Observation[] {
  if (forwarding[family] === false)
    return [
      {
        kind: 'forwarding',
        severity: 'warning',
        text: `${SWITCHES[family]} is 0: this node forwards no ${family} packets from or to pods`,
        remedy: `sysctl -w ${SWITCHES[family]}=1, and the same in /etc/sysctl.d`,
      },
    ];
  return notForwarding[family].map((name) => ({
    kind: 'forwarding',
    severity: 'warning',
    text: `net.${family === 'IPv4' ? 'ipv4' : 'ipv6'}.conf.${name}.forwarding is 0: what comes in by ${name} is not forwarded`,
    remedy: `sysctl -w net.${family === 'IPv4' ? 'ipv4' : 'ipv6'}.conf.${name}.forwarding=1`,
  }));
}

function ofFlows({ flows, network }: NodeFacts): readonly Observation[] {
  const found: Observation[] = [];
  const remedy =
    'raise net.netfilter.nf_conntrack_max (conntrack.maxPerCore or min of the configuration), or find who opens so many (conntrack -L)';
  if (flows !== null && flows.entries >= NEARLY_FULL * flows.limit)
    found.push({
      kind: 'conntrack',
      severity: 'warning',
      text: `the connection table has ${flows.entries} of ${flows.limit} entries: new connections are dropped when it is full`,
      remedy,
    });
  const drops = network?.flowDrops ?? 0;
  if (drops > 0)
    found.push({
      kind: 'conntrack',
      severity: 'note',
      text: `${drops} packets were dropped since the network namespace was made, as the connection table was full`,
      remedy,
    });
  return found;
}

function ofCluster(seen: NodeFacts): readonly Observation[] {
  const { ready, nodeName, podCIDRs, clusterCIDRs } = seen;
  const found: Observation[] = [];
  if (ready && podCIDRs === null)
    found.push({
      kind: 'node',
      severity: 'warning',
      text: `there is no Node ${JSON.stringify(nodeName)}: its addresses, zone and pods are not known, and load balancers send nothing here`,
      remedy: 'set --hostname-override to the name of this Node (kubectl get nodes)',
    });
  const outside = (podCIDRs ?? []).filter((pods) => {
    const same = (clusterCIDRs ?? []).filter((cidr) => familyOf(cidr) === familyOf(pods));
    return same.length > 0 && !same.some((cidr) => prefixWithin(pods, cidr));
  });
  if (outside.length > 0)
    found.push({
      kind: 'cluster-cidr',
      severity: 'warning',
      text: `the Node's podCIDRs ${outside.join(', ')} are not in clusterCIDR ${(clusterCIDRs ?? []).join(',')}: its pods count as clients from outside`,
      remedy: 'set clusterCIDR to the range that all podCIDRs are from',
    });
  return [...found, ...ofNodePorts(seen)];
}

function ofNodePorts({ nodePorts, localAddresses }: NodeFacts): readonly Observation[] {
  return nodePorts.flatMap(({ family, prefixes }) => {
    if (prefixes === null || localAddresses.some((address) => isWithin(address, prefixes))) return [];
    const ranges = prefixes.length === 0 ? 'no address' : prefixes.join(', ');
    return [
      {
        kind: 'node-ports',
        severity: 'warning',
        text: `node ports of ${family} answer on ${ranges}, and this node has no address there`,
        remedy: 'set nodePortAddresses to ranges that hold an address of this node, or to "primary"',
      } as const,
    ];
  });
}

function isWithin(address: IPAddress, prefixes: readonly IPPrefix[]): boolean {
  const family = familyOf(address);
  return prefixes.some((prefix) => familyOf(prefix) === family && prefixContains(prefix, address));
}

/** An observation in lines: what was seen, and what to do. */
export function printObservation({ severity, text, remedy }: Observation): readonly string[] {
  return [`${severity}: ${text}`, `  remedy: ${remedy}`];
}
