// Where packets to Service addresses end up, and which source arrives: behaviour §10.1 to §10.3 and §10.5 to §10.9.
import t, { type Test } from 'tap';
import { inFull, underEmulation, usually } from '../support/extent.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { serviceCIDR } from '../support/lab/objects.js';
import {
  addVisitor,
  checkRows,
  dualStack,
  FAMILY_VIEWS,
  type FamilyView,
  type PodEndpoint,
  type Row,
} from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES, PREFIXES } from '../support/lab/topology.js';

const SERVICE_CIDR = serviceCIDR('kubernetes', [PREFIXES.services.IPv4, PREFIXES.services.IPv6]);
const TRAITS = traitsOf(labMode());
/** What becomes of ports of a cluster IP that no Service has; the network around the node swallows what is let through. */
const UNUSED_PORT = TRAITS.refusesUnusedPorts ? 'refused' : 'dropped';
const PODS = ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b'] as const;

/** The same rows for both families. */
function both(rows: (view: FamilyView) => readonly Row[]): readonly Row[] {
  return FAMILY_VIEWS.flatMap(rows);
}

/** Of the cases of a list one of each kind, or those that follow. */
type Part = 'kinds' | 'further';

function part<Case>(cases: readonly Case[], which: Part): readonly Case[] {
  if (which === 'further') return cases.slice(5);
  return underEmulation(cases.slice(1, 5), cases.slice(0, 5));
}

const further = underEmulation({ skip: 'vm-thorough has it' }, inFull);
/** What the same file in mode nftables shows. */
const repeated = labMode() === 'nftables' ? {} : further;

/** Under a kernel that is a program each packet costs ten times as much: `npm test` shows there that Services are served. */
const underUserMode = labMode() === 'ipvs-legacy' ? inFull : {};

interface World {
  readonly lab: Lab;
  readonly proxy: Proxy;
}

t.test('verdicts of packets by policies, endpoints and addresses', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  await addVisitor(lab);
  const world = { lab, proxy: await Proxy.start(t, lab) };
  // Each has Services of its own, and those of the one before are forgotten.
  await t.test('a Service without endpoints is refused on every frontend', underUserMode, (t) => noEndpoints(t, world));
  await t.test('cluster IPs are balanced', (t) => clusterIPs(t, world));
  await t.test('external policies are obeyed', underUserMode, (t) => externalPolicies(t, world));
  // Which endpoints a condition or policy leaves is decided in the plan, whose tests have every case: no mode knows of it.
  await t.test('internal policies are obeyed', repeated, (t) => internalPolicy(t, world, 'kinds'));
  await t.test('further internal policies are obeyed', repeated, (t) => internalPolicy(t, world, 'further'));
  await t.test('terminating endpoints are used if none is ready', repeated, (t) =>
    terminatingEndpoints(t, world, 'kinds'),
  );
  await t.test('further conditions of endpoints are obeyed', further, (t) => terminatingEndpoints(t, world, 'further'));
});

async function noEndpoints(t: Test, { lab, proxy }: World): Promise<void> {
  const protocols = ['TCP', 'UDP', 'SCTP'] as const;
  await proxy.apply(
    dualStack('empty', {
      type: 'LoadBalancer',
      number: 41,
      loadBalancers: [3],
      externals: [11],
      ports: protocols.map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80, nodePort: 30001 })),
      endpoints: [],
    }),
  );
  await checkRows(
    t,
    lab,
    both((view) =>
      protocols.flatMap((protocol) => {
        const refused = (shows: string, from: string, address: string, port = 80): Row => ({
          shows,
          from,
          to: endpoint(address, port),
          protocol,
          expect: 'refused',
        });
        return [
          refused('PF-001', 'pod-b', view.clusterIP(41)),
          refused('PF-001 from the node', 'node', view.clusterIP(41)),
          refused('PF-002', 'client', view.externalIP(11)),
          refused('PF-003', 'pod-b', view.address('node'), 30001),
          refused('PF-004', 'client', view.address('node'), 30001),
          refused('PF-005', 'pod-b', view.loadBalancerIP(3)),
          refused('PF-006', 'client', view.loadBalancerIP(3)),
          refused('VD-01', 'node', view.loadBalancerIP(3)),
          refused('VD-01', 'node', view.externalIP(11)),
          refused('VD-01', 'node', view.address('node'), 30001),
        ];
      }),
    ),
  );
  for (let attempt = 0; attempt < underEmulation(1, usually(1, 3)); attempt++) {
    const outcomes = await lab.burst({ from: 'client', to: `${ADDRESSES.node.IPv4}:30001` }, 200);
    t.match(outcomes, [{ error: 'refused', count: 200 }], 'VD-21: resets are not rate limited');
  }
}

async function clusterIPs(t: Test, { lab, proxy }: World): Promise<void> {
  const ports = [
    { name: 'http', port: 80 },
    { name: 'https', port: 443, targetPort: 8443 },
    { name: 'dns-udp', protocol: 'UDP', port: 53 },
    { name: 'dns-tcp', protocol: 'TCP', port: 53, targetPort: 5353 },
    { name: 'dns-sctp', protocol: 'SCTP', port: 53 },
  ] as const;
  await lab.serveAll(
    ['pod-a', 'remote-a'],
    ports
      .filter(({ port }) => port !== 80)
      .map(({ port, ...rest }) => [
        'targetPort' in rest ? rest.targetPort : port,
        'protocol' in rest ? rest.protocol : 'TCP',
      ]),
  );
  const objects = [
    ...dualStack('svc1', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] }),
    ...dualStack('svc2', { number: 42, ports, endpoints: ['pod-a', 'remote-a'] }),
  ];
  await proxy.apply([...objects, SERVICE_CIDR]);
  await checkRows(
    t,
    lab,
    both((view) => {
      const to = (number: number, port: number): string => endpoint(view.clusterIP(number), port);
      const two = ['pod-a', 'remote-a'] as const;
      return [
        { shows: 'PF-010', from: 'pod-b', to: to(41, 80), expect: view.kept(['pod-a'], 80) },
        { shows: 'PF-011 hairpin', from: 'pod-a', to: to(41, 80), expect: view.masqueraded(['pod-a'], 80) },
        { shows: 'PF-012', from: 'pod-b', to: to(42, 80), expect: view.kept(two, 80) },
        { shows: 'E-04 pod of another node', from: 'remote-b', to: to(41, 80), expect: view.kept(['pod-a'], 80) },
        { shows: 'PF-013', from: 'pod-b', to: to(42, 443), expect: view.kept(two, 8443) },
        { shows: 'PF-014', from: 'pod-b', to: to(42, 53), expect: view.kept(two, 5353) },
        { shows: 'PF-015', from: 'pod-b', to: to(42, 53), protocol: 'UDP', expect: view.kept(two, 53) },
        { shows: 'PF-016', from: 'pod-b', to: to(42, 53), protocol: 'SCTP', expect: view.kept(two, 53) },
        { shows: 'PF-017', from: 'pod-b', to: to(42, 80), protocol: 'UDP', expect: UNUSED_PORT },
        { shows: 'PF-018', from: 'pod-b', to: to(41, 443), expect: UNUSED_PORT },
        { shows: 'VD-15 from the node', from: 'node', to: to(41, 443), expect: UNUSED_PORT },
        { shows: 'PF-019', from: 'pod-b', to: to(50, 80), expect: 'dropped' },
        { shows: 'VD-16 from the node', from: 'node', to: to(50, 80), expect: 'dropped' },
        { shows: 'VD-10', from: 'client', to: to(41, 80), expect: view.masqueraded(['pod-a'], 80) },
        { shows: 'VD-10', from: 'node', to: to(42, 53), protocol: 'UDP', expect: view.masqueraded(two, 53) },
        { shows: 'VD-10', from: 'client', to: to(42, 53), protocol: 'SCTP', expect: view.masqueraded(two, 53) },
      ];
    }),
  );
  const more = serviceCIDR('more', [PREFIXES.moreServices.IPv4, PREFIXES.moreServices.IPv6]);
  const unused = ['10.97.0.7:80', '[fd00:10:97::7]:80'];
  // The lab's router answers for prefixes nobody takes, so "unreachable" is the network's verdict and "dropped" ours.
  await proxy.apply([...objects, SERVICE_CIDR, more]);
  await checkRows(
    t,
    lab,
    unused.map((to) => ({ from: 'pod-b', to, expect: 'dropped', shows: 'ServiceCIDR added live' })),
  );
  const ours = /10\.97\.0\.0\/16.* (?:-j DROP|drop)$/m;
  t.equal(ours.test(await proxy.rules()), TRAITS.dropsUnusedAddresses);
  await proxy.apply([...objects, SERVICE_CIDR]);
  t.notMatch(await proxy.rules(), /10\.97\.0\.0/, 'E-81: a removed ServiceCIDR is dropped no more');
}

async function externalPolicies(t: Test, { lab, proxy }: World): Promise<void> {
  const loadBalancer = (policy: 'Cluster' | 'Local') =>
    dualStack('web', {
      type: 'LoadBalancer',
      number: 41,
      loadBalancers: [3],
      externals: [11],
      externalTrafficPolicy: policy,
      ports: [{ port: 80, nodePort: 30001 }],
      endpoints: ['remote-a', 'pod-a'],
    });
  const two = ['pod-a', 'remote-a'] as const;
  const inside = TRAITS.prefersLocal ? (['pod-a'] as const) : two;
  const rows = (
    view: FamilyView,
    expected: { pod: string; outside: string; node: string },
    ids: readonly string[],
  ): Row[] => {
    const to = [view.externalIP(11), view.loadBalancerIP(3)].map((address) => endpoint(address, 80));
    const [external, loadBalancerIP, nodePort] = [to[0] ?? '', to[1] ?? '', view.nodePort(30001)];
    return [
      { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(two, 80) },
      { from: 'pod-b', to: external, expect: expected.pod },
      { from: 'client', to: external, expect: expected.outside },
      { from: 'pod-b', to: loadBalancerIP, expect: expected.pod },
      { from: 'client', to: loadBalancerIP, expect: expected.outside },
      { from: 'pod-b', to: nodePort, expect: expected.pod },
      { from: 'client', to: nodePort, expect: expected.outside },
      { from: 'node', to: external, expect: expected.node },
      { from: 'node', to: loadBalancerIP, expect: expected.node },
      { from: 'node', to: nodePort, expect: expected.node },
    ].map((row, index) => ({ ...row, shows: ids[index] ?? 'VD-06, VD-07' }));
  };
  const local = ['PF-050', 'PF-051', 'PF-052', 'PF-053', 'PF-054', 'PF-055', 'PF-056'];
  const cluster = ['PF-060', ...new Array<string>(6).fill('PF-061')];
  const localRows = both((view) =>
    rows(
      view,
      { pod: view.kept(inside, 80), outside: view.kept(['pod-a'], 80), node: view.masqueraded(inside, 80) },
      local,
    ),
  );
  const clusterRows = both((view) => {
    const all = view.masqueraded(two, 80);
    return rows(view, { pod: all, outside: all, node: all }, cluster);
  });
  await proxy.apply(loadBalancer('Local'));
  await checkRows(t, lab, localRows, 'Local');
  await proxy.apply(loadBalancer('Cluster'));
  await checkRows(t, lab, clusterRows, 'Cluster');
  await proxy.apply(loadBalancer('Local'));
  await checkRows(t, lab, localRows, 'Local again');
}

async function internalPolicy(t: Test, { lab, proxy }: World, which: Part): Promise<void> {
  const internal = (policy: 'Cluster' | 'Local', endpoints: readonly (typeof PODS)[number][]) =>
    dualStack('inner', {
      type: 'NodePort',
      number: 41,
      internalTrafficPolicy: policy,
      ports: [{ port: 80, nodePort: 30001 }],
      endpoints,
    });
  const cases = [
    {
      shows: 'PF-070',
      policy: 'Cluster',
      endpoints: ['pod-a', 'remote-a', 'remote-b'],
      expect: ['pod-a', 'remote-a', 'remote-b'],
    },
    { shows: 'PF-071', policy: 'Local', endpoints: ['pod-a', 'remote-a', 'remote-b'], expect: ['pod-a'] },
    { shows: 'PF-072', policy: 'Local', endpoints: ['pod-a', 'pod-c', 'remote-b'], expect: ['pod-a', 'pod-c'] },
    { shows: 'PF-073', policy: 'Local', endpoints: ['remote-a', 'remote-b'], expect: 'dropped' },
    { shows: 'PF-074', policy: 'Local', endpoints: [], expect: 'refused' },
    { shows: 'PF-073 after no endpoints', policy: 'Local', endpoints: ['remote-a'], expect: 'dropped' },
    { shows: 'PF-071 after a drop', policy: 'Local', endpoints: ['pod-a', 'remote-a'], expect: ['pod-a'] },
    { shows: 'PF-074', policy: 'Cluster', endpoints: [], expect: 'refused' },
  ] as const;
  const toNode = (expect: string): string => (expect === 'dropped' && TRAITS.refusesWhileDraining ? 'refused' : expect);
  for (const { shows, policy, endpoints, expect } of part(cases, which)) {
    await proxy.apply(internal(policy, endpoints));
    await checkRows(
      t,
      lab,
      both((view) => {
        const to = endpoint(view.clusterIP(41), 80);
        const nodePort = view.nodePort(30001);
        return [
          { from: 'pod-b', to, expect: typeof expect === 'string' ? expect : view.kept(expect, 80) },
          { from: 'node', to, expect: typeof expect === 'string' ? toNode(expect) : view.masqueraded(expect, 80) },
          {
            from: 'client',
            to: nodePort,
            expect: endpoints.length === 0 ? 'refused' : view.masqueraded(endpoints, 80),
          },
        ];
      }),
      shows,
    );
  }
}

async function terminatingEndpoints(t: Test, { lab, proxy }: World, which: Part): Promise<void> {
  const serving = { ready: false, serving: true, terminating: true } as const;
  const stopped = { ready: false, serving: false, terminating: true } as const;
  const unready = { ready: false, serving: true, terminating: false } as const;
  type Pods = readonly (typeof PODS)[number][];
  interface Case {
    readonly shows: string;
    readonly endpoints: readonly PodEndpoint[];
    /** Who answers from inside, and from outside under each policy; empty: the verdict given. */
    readonly cluster: Pods | string;
    readonly local: Pods | string;
    readonly inside: Pods | string;
  }
  const cases: readonly Case[] = [
    {
      shows: 'PF-080, PF-090',
      endpoints: [
        { pod: 'pod-a' },
        { pod: 'pod-b' },
        { pod: 'pod-c', ...serving },
        { pod: 'remote-b', ...stopped },
        { pod: 'remote-a' },
      ],
      inside: ['pod-a', 'pod-b', 'remote-a'],
      cluster: ['pod-a', 'pod-b', 'remote-a'],
      local: ['pod-a', 'pod-b'],
    },
    {
      shows: 'PF-081',
      endpoints: [
        { pod: 'pod-a', ...serving },
        { pod: 'pod-b', ...serving },
        { pod: 'pod-c', ...stopped },
        { pod: 'remote-a' },
      ],
      inside: ['remote-a'],
      cluster: ['remote-a'],
      local: ['pod-a', 'pod-b'],
    },
    {
      shows: 'PF-091',
      endpoints: [
        { pod: 'pod-a', ...serving },
        { pod: 'pod-b', ...serving },
        { pod: 'pod-c', ...stopped },
        { pod: 'remote-a', ...serving },
      ],
      inside: ['pod-a', 'pod-b', 'remote-a'],
      cluster: ['pod-a', 'pod-b', 'remote-a'],
      local: ['pod-a', 'pod-b'],
    },
    {
      shows: 'PF-082, PF-092',
      endpoints: [{ pod: 'remote-a', ...serving }],
      inside: ['remote-a'],
      cluster: ['remote-a'],
      local: 'dropped',
    },
    {
      shows: 'PF-083, PF-093',
      endpoints: [
        { pod: 'pod-a', ...stopped },
        { pod: 'remote-a', ...stopped },
      ],
      inside: 'refused',
      cluster: 'refused',
      local: 'refused',
    },
    {
      shows: 'SE-02 serving, not ready, not terminating',
      endpoints: [
        { pod: 'pod-a', ...unready },
        { pod: 'remote-a', ...unready },
      ],
      inside: 'refused',
      cluster: 'refused',
      local: 'refused',
    },
    {
      shows: 'SE-04 ready and terminating',
      endpoints: [{ pod: 'pod-a', ready: true, serving: true, terminating: true }, { pod: 'remote-a' }],
      inside: ['pod-a', 'remote-a'],
      cluster: ['pod-a', 'remote-a'],
      local: ['pod-a'],
    },
    { shows: 'PF-084, PF-093', endpoints: [], inside: 'refused', cluster: 'refused', local: 'refused' },
  ];
  for (const { shows, endpoints, ...expected } of part(cases, which)) {
    await proxy.apply(
      (['Cluster', 'Local'] as const).flatMap((policy, index) =>
        dualStack(policy.toLowerCase(), {
          type: 'LoadBalancer',
          number: 41 + index,
          loadBalancers: [3 + index],
          externalTrafficPolicy: policy,
          ports: [{ port: 80 }],
          endpoints,
        }),
      ),
    );
    await checkRows(
      t,
      lab,
      both((view) => {
        const kept = (pods: Pods | string): string => (typeof pods === 'string' ? pods : view.kept(pods, 80));
        const outside =
          typeof expected.cluster === 'string' ? expected.cluster : view.masqueraded(expected.cluster, 80);
        const visitor = { from: 'pod-c', source: view.visitor };
        return [
          { ...visitor, to: endpoint(view.clusterIP(41), 80), expect: kept(expected.inside) },
          { ...visitor, to: endpoint(view.clusterIP(42), 80), expect: kept(expected.inside) },
          { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: outside },
          { from: 'client', to: endpoint(view.loadBalancerIP(4), 80), expect: kept(expected.local) },
        ];
      }),
      shows,
    );
  }
}
