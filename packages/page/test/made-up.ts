import type {
  Configuration,
  Endpoint,
  ExplainAnswer,
  Frontend,
  History,
  LatencyHistogram,
  Overview,
  Repair,
  ServiceDetail,
  ServiceSummary,
  Sync,
  TriageAnswer,
} from '../src/api.js';

/** Answers of a node that there is not: whatever the page may have to show, and what it hopefully never has to. */

/** Markup and quotes. No object of a cluster may be called so, which the page need not know. */
export const MARKUP = `<img src=x onerror="window.hit=1">&amp;'`;
/** The same with what ends a script, and what turns text around. */
export const HOSTILE = `${MARKUP}<script>window.hit=1</script>\u202etxt`;
export const LONG = `very-${'long-'.repeat(48)}name`;

export const STARTED = '2026-03-04T05:06:07.000000000Z';

export function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

export function overview(change: Partial<Overview> = {}): Overview {
  const family = {
    healthy: true,
    services: 43_998,
    frontends: 88_210,
    endpoints: 130_400,
    pendingFrontends: 0,
    pendingMs: null,
    syncedAt: ago(3),
    conflicts: 1,
    quarantined: 1,
    unplanned: 0,
    syncs: 18_220,
    failures: 0,
    repairs: 2,
  };
  return {
    release: '0.1.0',
    version: 'v1.36.0',
    mode: 'nftables',
    node: 'worker-17.eu-central.example',
    pid: 4711,
    startedAt: ago(93_784),
    at: new Date().toISOString(),
    health: {
      healthy: true,
      nodeEligible: true,
      reasons: [
        {
          severity: 'warning',
          kind: 'quarantined',
          family: 'IPv4',
          text: 'the kernel refuses 10.96.3.7:443/TCP of shop/checkout:https: Invalid argument',
          since: ago(760),
        },
        {
          severity: 'warning',
          kind: 'conflict',
          family: 'IPv4',
          text: '192.0.2.10:80/TCP is claimed by two Services',
          since: ago(5000),
        },
      ],
    },
    families: [
      { family: 'IPv4', ...family },
      {
        family: 'IPv6',
        ...family,
        services: 12,
        frontends: 24,
        endpoints: 31,
        conflicts: 0,
        quarantined: 0,
        repairs: 0,
      },
    ],
    sources: [
      {
        source: 'https://10.96.0.1:443 Services',
        synced: true,
        lastEventAt: ago(2),
        failures: [{ kind: 'disconnected', count: 3 }],
      },
      { source: 'https://10.96.0.1:443 EndpointSlices', synced: true, lastEventAt: ago(1), failures: [] },
    ],
    services: 44_000,
    memory: { residentBytes: 187_400_000, heapBytes: 61_200_000, externalBytes: 4_100_000 },
    ...change,
  };
}

export function summary(index: number): ServiceSummary {
  const namespace = index === 0 ? 'a' : `team-${String(Math.floor(index / 100)).padStart(3, '0')}`;
  const name = index === 0 ? MARKUP : index === 1 ? LONG : `service-${String(index).padStart(5, '0')}`;
  const hasNone = index % 97 === 5;
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    type: index % 5 === 0 ? 'LoadBalancer' : 'ClusterIP',
    addresses: [`10.96.${Math.floor(index / 250) % 250}.${index % 250}`],
    moreAddresses: index % 5 === 0 ? 1 : 0,
    ports: index % 5 === 0 ? ['443:30443/TCP'] : ['80/TCP'],
    morePorts: 0,
    endpointsUsed: hasNone ? 0 : 2,
    endpoints: 3,
    problems: hasNone ? ['no-endpoints'] : index === 3 ? ['conflict', 'quarantined'] : [],
  };
}

const READY = ['ready', 'serving'] as const;

function endpoint(address: string, node: string, conditions: Endpoint['conditions'], reason: string | null): Endpoint {
  const pod = `app-${address.split('.')[2] ?? ''}`;
  return { endpoint: address, node, pod, conditions, zoneHints: [], nodeHints: [], used: reason === null, reason };
}

export const ENDPOINTS: readonly Endpoint[] = [
  endpoint('10.244.1.10:8443', 'worker-17', READY, null),
  endpoint('10.244.2.10:8443', 'worker-18', READY, null),
  endpoint('10.244.3.10:8443', HOSTILE, ['serving', 'terminating'], 'terminating, and others are ready'),
  endpoint('10.244.4.10:8443', LONG, [], 'not ready'),
];

function frontend(key: string, change: Partial<Frontend> = {}): Frontend {
  return {
    key,
    family: 'IPv4',
    kind: 'cluster IP',
    port: 'https',
    explain: key,
    endpoints: 2,
    localEndpoints: null,
    masquerade: 'non-pod clients',
    whenEmpty: 'reject',
    lostTo: null,
    claimedBy: [],
    quarantined: null,
    ...change,
  };
}

/** What went through a Service's port. */
export function traffic(connections: number): NonNullable<ServiceDetail['traffic']> {
  const sum = {
    connections,
    requestPackets: 10 * connections,
    requestBytes: 1000 * connections,
    replyPackets: 20 * connections,
    replyBytes: 1_000_000 * connections,
  };
  const endpoints = ['10.244.1.2:8443', '_other'].map((endpoint) => ({ endpoint, ...sum }));
  const refused = [
    { verdict: 'refused', reason: 'no-endpoints', packets: 12 },
    { verdict: 'dropped', reason: 'source-range', packets: 3400 },
  ] as const;
  return [{ port: 'https', protocol: 'TCP', ...sum, endpoints, refused }];
}

export function detail({ key, namespace, name, type, addresses, problems }: ServiceSummary): ServiceDetail {
  const group = { family: 'IPv4', port: 'https', protocol: 'TCP', used: 2, total: 4, rows: ENDPOINTS } as const;
  const reasons = [
    { reason: 'terminating, and others are ready', count: 1 },
    { reason: 'not ready', count: 1 },
  ];
  const other = { servicePort: 'shop/older:https', service: 'shop/older', reason: 'it was created before' };
  return {
    key,
    namespace,
    name,
    type: type ?? 'ClusterIP',
    createdAt: STARTED,
    nothing: null,
    clusterIPs: addresses,
    externalIPs: [],
    loadBalancer: [{ address: '192.0.2.10', mode: 'VIP' }],
    sourceRanges: ['198.51.100.0/24'],
    policies: { internal: 'Cluster', external: 'Local' },
    affinitySeconds: 10_800,
    healthCheck: { port: 30_999, localEndpoints: 1 },
    ports: [{ name: 'https', protocol: 'TCP', port: 443, nodePort: 30_443 }],
    frontends: [
      frontend(`${addresses[0] ?? ''}:443/TCP`),
      frontend('nodeport:30443/TCP', { kind: 'node port', explain: null, localEndpoints: 1 }),
      frontend('192.0.2.10:443/TCP', {
        kind: 'load balancer',
        localEndpoints: 1,
        whenEmpty: 'drop',
        lostTo: problems.includes('conflict') ? other : null,
        quarantined: problems.includes('quarantined') ? { reason: HOSTILE, since: ago(700) } : null,
      }),
    ],
    endpoints: [
      { ...group, policy: 'Cluster', applies: 'from pods and this node', reasons },
      { ...group, policy: 'Local', applies: 'from outside', used: 1, reasons },
    ],
    portCount: 1,
    frontendCount: 3,
    sliceCount: 1,
    limitations: [],
    leftOut: key.endsWith('service-00003') ? [`EndpointSlice x: endpoints[0].addresses[0]: ${MARKUP}`] : [],
    slices: [{ name: `${name}-abc12`, family: 'IPv4', endpoints: 4, ports: ['https 8443/TCP'] }],
    unplanned: [],
    traffic: null,
  };
}

/** The Service that every explanation is about. */
export const EXPLAINED = 'team-000/service-00007';

/** @param isPending whether a change waits for its sync. */
export function explanation(to: string, from: string, isPending = false): ExplainAnswer {
  const nothing = { endpoints: [], moreEndpoints: 0 };
  const isDropped = to.includes(':53/');
  return {
    from,
    to,
    outcome: isDropped ? 'drop' : 'forward',
    service: EXPLAINED,
    headline: `TCP from ${from} to ${to} is ${isDropped ? 'dropped' : 'forwarded to one of 2 endpoints, masqueraded'}`,
    steps: [
      { id: 'source', title: 'Source', outcome: 'goes-on', lines: ['an external client'], ...nothing },
      { id: 'service', title: 'Service', outcome: 'goes-on', lines: [`shop/${HOSTILE}:https, cluster IP`], ...nothing },
      { id: 'conflict', title: 'Conflict', outcome: 'warning', lines: ['shop/older claims it, too'], ...nothing },
      {
        id: 'policy',
        title: 'Policy',
        outcome: isDropped ? 'ends' : 'info',
        lines: ['externalTrafficPolicy Local: endpoints on this node only'],
        ...nothing,
      },
      {
        id: 'endpoints',
        title: 'Endpoints',
        outcome: 'goes-on',
        lines: ['2 of 4 used'],
        endpoints: ENDPOINTS,
        moreEndpoints: 12,
      },
      { id: 'masquerade', title: 'Masquerade', outcome: 'info', lines: ['yes: it comes from outside'], ...nothing },
      ...(isPending
        ? [
            {
              id: 'pending',
              title: 'Pending',
              outcome: 'warning',
              lines: ['a change waits for 7 ms'],
              ...nothing,
            } as const,
          ]
        : []),
    ],
    text: `TCP from ${from} to ${to}\nsource      ${HOSTILE}`,
  };
}

export function sync(number: number, change: Partial<Sync> = {}): Sync {
  const syncMs = 0.4 * 1.7 ** (number % 12);
  return {
    number,
    family: 'IPv4',
    endedAt: ago(600 - number),
    full: number % 16 === 1,
    syncMs,
    sinceChangeMs: syncMs * 1.3,
    transactions: 1,
    elementOperations: 3 + (number % 7),
    ruleOperations: 0,
    bytes: 520 * (1 + (number % 9)),
    frontends: number % 16 === 1 ? 0 : 1 + (number % 5),
    servicePorts: number % 16 === 1 ? [] : [`team-${number}/service-${number}:https`],
    ...change,
  };
}

export function repair(number: number, change: Partial<Repair> = {}): Repair {
  return {
    number,
    family: 'IPv4',
    at: ago(60),
    process: 'nft[31337]',
    differences: 4,
    seconds: 0.012,
    texts: ['missing: element 10.96.0.10 . tcp . 80 of map services', `wrong: ${HOSTILE}`],
    ...change,
  };
}

function latency(kind: LatencyHistogram['kind'], family: 'IPv4' | 'IPv6'): LatencyHistogram {
  const counts = [0, 12, 480, 4200, 8800, 3100, 900, 220, 41, 6, 1, 0, 0, 0];
  const buckets = counts.map((count, index) => ({ upToMs: index === 13 ? null : 0.25 * 2 ** index, count }));
  return { kind, family, count: counts.reduce((sum, count) => sum + count), sumMs: 64_000, buckets };
}

export function history(): History {
  const syncs = Array.from({ length: 40 }, (_, index) => sync(40 - index));
  return {
    syncs,
    slowest: syncs
      .filter(({ full }) => !full)
      .sort((one, other) => other.syncMs - one.syncMs)
      .slice(0, 5),
    repairs: [repair(1)],
    failures: [{ family: 'IPv6', count: 2, at: ago(4000), text: 'nft: Device or resource busy', over: true }],
    latency: (['change', 'sync'] as const).flatMap((kind) => [latency(kind, 'IPv4'), latency(kind, 'IPv6')]),
  };
}

export function triage(): TriageAnswer {
  const steps = Array.from({ length: 180 }, (_, index) => index);
  const key = summary(5).key;
  return {
    problems: [
      { problem: 'port-name', count: 1, examples: [`a/${MARKUP}`] },
      { problem: 'no-endpoints', count: 454, examples: [key, summary(102).key, `a/${LONG}`] },
      { problem: 'no-local-endpoints', count: 3, examples: [key] },
      { problem: 'limitation', count: 2, examples: [key] },
    ],
    observations: [
      {
        severity: 'warning',
        text: 'net.ipv4.ip_forward is 0: this node forwards no IPv4 packets from or to pods',
        remedy: 'sysctl -w net.ipv4.ip_forward=1, and the same in /etc/sysctl.d',
      },
    ],
    activity: {
      stepSeconds: 5,
      endedAt: ago(1),
      syncMs: steps.map((step) => (step % 7 === 0 ? 1 + (step % 40) : null)),
      changes: steps.map((step) => (step % 7 === 0 ? step : 0)),
      connections: steps.map((step) => step * 50),
      refused: steps.map((step) => (step > 150 ? step : 0)),
      busiest: [
        { key, connections: 812.4, bytes: 12_400_000, refused: 0 },
        { key: '_other', connections: 3.2, bytes: 1000, refused: 4 },
      ],
    },
  };
}

export function configuration(): Configuration {
  return {
    fields: [
      { field: 'clusterCIDR', value: '"10.244.0.0/16"', initial: '""', ineffective: null },
      { field: 'mode', value: '"nftables"', initial: '"iptables"', ineffective: null },
      { field: 'iptables.masqueradeBit', value: '14', initial: null, ineffective: 'the mode is nftables' },
      {
        field: 'nodePortAddresses',
        value: `["primary","${HOSTILE.replaceAll('"', '\\"')}"]`,
        initial: null,
        ineffective: null,
      },
    ],
    warnings: ['iptables.masqueradeBit: the mode is nftables', `featureGates: ${HOSTILE} is not known`],
    flags: [
      { name: 'config', value: '/var/lib/kube-proxy/config.conf', initial: '' },
      { name: 'hostname-override', value: LONG, initial: null },
    ],
    files: ['/var/lib/kube-proxy/config.conf'],
    refused: null,
  };
}
