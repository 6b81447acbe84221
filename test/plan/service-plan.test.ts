import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import { nodeFacts, type PlanSettings } from '../../src/plan/facts.js';
import { planService } from '../../src/plan/service-plan.js';
import type { FrontendPlan, ServicePlan } from '../../src/plan/types.js';
import type { EndpointSliceRow, ServiceRow } from '../../src/state/rows.js';
import { planSettings } from '../support/plan-settings.js';
import {
  address,
  node,
  prefix,
  service,
  serviceCIDR,
  slice,
  type EndpointText,
  type ServiceText,
} from '../support/rows.js';

const NODE = node('me', ['192.168.0.2', '2001:db8::2']);
const HERE: EndpointText = { address: '10.0.0.1', node: 'me' };
const THERE: EndpointText = { address: '10.0.0.2', node: 'other' };

interface Environment {
  readonly slices?: readonly EndpointSliceRow[];
  readonly family?: Family;
  readonly settings?: Partial<PlanSettings>;
}

function plan(row: ServiceRow, { slices, family = 'IPv4', settings = {} }: Environment = {}): ServicePlan | null {
  const all = planSettings(settings);
  return planService(family, row, slices ?? [slice(row.name, [HERE, THERE])], nodeFacts(all, NODE), all);
}

function frontends(text: ServiceText, environment?: Environment): readonly FrontendPlan[] {
  return plan(service('svc', text), environment)?.frontends ?? [];
}

function keys(text: ServiceText, environment?: Environment): readonly string[] {
  return frontends(text, environment).map(({ key, kind }) => `${kind} ${key}`);
}

/** The one frontend of a kind. */
function frontend(kind: FrontendPlan['kind'], text: ServiceText, environment?: Environment): FrontendPlan {
  const [found, ...rest] = frontends(text, environment).filter((candidate) => candidate.kind === kind);
  if (found === undefined || rest.length > 0) throw new Error(`not one ${kind}`);
  return found;
}

t.test('SV-01: headless and ExternalName Services have no plan', (t) => {
  t.equal(plan(service('svc', { clusterIPs: [] })), null, 'headless');
  t.equal(plan(service('svc', { type: 'ExternalName' })), null, 'ExternalName, even with a cluster IP');
  t.equal(plan(service('svc', { clusterIPs: ['fd00::1'] })), null, 'no cluster IP of the family');
  t.equal(plan(service('svc', { clusterIPs: [], externalIPs: ['1.2.3.4'], ports: [{ nodePort: 30000 }] })), null);
  t.not(plan(service('svc', { clusterIPs: ['fd00::1'] }), { family: 'IPv6' }), null);
  t.same(plan(service('svc', { ports: [] }))?.frontends, [], 'no ports, no frontends');
  t.end();
});

t.test('SV-02: the plan has the cluster IP of its family', (t) => {
  const both = { clusterIPs: ['172.30.0.1', 'fd00::1'] };
  t.same(keys(both), ['ClusterIP 172.30.0.1:80/TCP']);
  t.same(keys(both, { family: 'IPv6' }), ['ClusterIP [fd00::1]:80/TCP']);
  const turned = { clusterIPs: ['fd00::1', '172.30.0.1'] };
  t.same(keys(turned), ['ClusterIP 172.30.0.1:80/TCP']);
  t.same(keys({ ...both, ipFamilies: [] }), ['ClusterIP 172.30.0.1:80/TCP'], 'without ipFamilies by the address');
  t.same(keys({ ...both, ipFamilies: ['IPv4'] }, { family: 'IPv6' }), [], 'a family the Service does not ask for');
  t.end();
});

t.test('SV-03: Service ports have names', (t) => {
  const ports = [
    { port: 53, protocol: 'TCP' as const, name: 'dns-tcp' },
    { port: 53, protocol: 'UDP' as const, name: 'dns' },
  ];
  const found = frontends({ ports, namespace: 'kube-system' });
  t.same(
    found.map(({ key, servicePort }) => `${key} ${servicePort}`),
    ['10.96.0.10:53/TCP kube-system/svc:dns-tcp', '10.96.0.10:53/UDP kube-system/svc:dns'],
  );
  t.equal(frontend('ClusterIP', {}).servicePort, 'default/svc', 'the unnamed port');
  const owner = plan(service('svc', { creationTime: 7 }));
  t.same([owner?.service, owner?.creationTime, owner?.family], ['default/svc', 7, 'IPv4']);
  t.end();
});

t.test('SV-04, SV-05: external IPs and load balancer addresses are planned', (t) => {
  const text: ServiceText = {
    externalIPs: ['1.1.1.1', '2001:db8::1'],
    loadBalancer: ['2.2.2.2', '2001:db8::2', { address: address('3.3.3.3'), ipMode: 'Proxy' }],
    clusterIPs: ['10.96.0.10', 'fd00::1'],
    ports: [{ nodePort: 30000 }],
  };
  t.same(keys(text), [
    'ClusterIP 10.96.0.10:80/TCP',
    'LoadBalancer 2.2.2.2:80/TCP',
    'ExternalIP 1.1.1.1:80/TCP',
    'NodePort nodeport:30000/TCP',
  ]);
  t.same(keys(text, { family: 'IPv6' }), [
    'ClusterIP [fd00::1]:80/TCP',
    'LoadBalancer [2001:db8::2]:80/TCP',
    'ExternalIP [2001:db8::1]:80/TCP',
    'NodePort nodeport:30000/TCP',
  ]);
  const refused = keys(text, { settings: { allowExternalIPs: false } });
  t.notOk(
    refused.some((key) => key.startsWith('ExternalIP')),
    'AllowServiceExternalIPs=false',
  );
  t.match(keys({ loadBalancer: ['2.2.2.2'], type: 'ClusterIP' })[1], 'LoadBalancer 2.2.2.2', 'whatever the type says');
  const nodePort = frontend('NodePort', text);
  t.same([nodePort.address, nodePort.port, nodePort.protocol], [null, 30000, 'TCP']);
  t.end();
});

t.test(
  "external IPs within the cluster's own ranges are left out and reported, load balancers' in the pods' may stay",
  (t) => {
    const IN_SERVICES = '10.96.9.9';
    const IN_PODS = '10.244.9.9';
    const OUTSIDE = '203.0.113.9';
    const settings = planSettings({ localDetection: { type: 'ClusterCIDR', prefixes: [prefix('10.244.0.0/16')] } });
    const cidrs = [serviceCIDR('kubernetes', ['10.96.0.0/16', 'fd00:10:96::/112'])];
    const row = service('svc', {
      type: 'LoadBalancer',
      clusterIPs: ['10.96.0.10'],
      externalIPs: [IN_PODS, IN_SERVICES, '10.96.0.10', OUTSIDE, 'fd00:10:96::9'],
      loadBalancer: ['10.96.8.8', '10.244.8.8'],
    });
    const planned = (more: Partial<PlanSettings> = {}, me = NODE, of = cidrs): ServicePlan | null => {
      const all = { ...settings, ...more };
      return planService('IPv4', row, [], nodeFacts(all, me, of), all);
    };
    const keysOf = (found: ServicePlan | null): unknown =>
      found?.frontends.map(({ kind, address: at }) => `${kind} ${at}`);
    const refused = planned();
    const served = ['ClusterIP 10.96.0.10', 'LoadBalancer 10.244.8.8', `ExternalIP ${OUTSIDE}`];
    t.same(keysOf(refused), served);
    t.same(refused?.limitations, [
      {
        family: 'IPv4',
        cause: 'address',
        servicePort: 'default/svc',
        text: 'load balancer address 10.96.8.8 is not served: it is within the range of Services 10.96.0.0/16 (one of 3 such addresses)',
      },
    ]);
    const all = ['ClusterIP', 'LoadBalancer', 'LoadBalancer', 'ExternalIP', 'ExternalIP', 'ExternalIP'];
    const allowed = planned({ externalIPsInClusterRanges: true });
    t.same(
      allowed?.frontends.map(({ kind }) => kind),
      all,
    );
    t.same(allowed?.limitations, []);
    const here = node('me', [IN_PODS]);
    t.same(keysOf(planned({}, here)), [...served.slice(0, 2), `ExternalIP ${IN_PODS}`, served[2]], "the node's own");
    const whole = { localDetection: { type: 'ClusterCIDR', prefixes: [prefix('0.0.0.0/0')] } } as const;
    t.equal(planned(whole, NODE, [])?.frontends.length, all.length, 'a range of everything says nothing of pods');
    const ofNode = { localDetection: { type: 'NodeCIDR' } } as const;
    t.equal(planned(ofNode, NODE, [])?.frontends.length, all.length, 'ranges that are not known');
    const withPods = { ...NODE, podCIDRs: [prefix('10.244.9.0/24')] };
    t.equal(planned(ofNode, withPods, [])?.frontends.length, all.length - 1, "the node's pods");
    t.end();
  },
);

t.test('SV-07: health check node ports are planned', (t) => {
  const local: ServiceText = { loadBalancer: ['2.2.2.2'], externalTrafficPolicy: 'Local', healthCheckNodePort: 31000 };
  const check = (text: ServiceText, environment?: Environment): unknown =>
    plan(service('svc', text), environment)?.healthCheck ?? null;
  t.same(check(local), { service: 'default/svc', port: 31000, localEndpoints: 1 });
  t.equal(check({ ...local, externalTrafficPolicy: 'Cluster' }), null);
  t.equal(check({ ...local, type: 'NodePort' }), null);
  t.equal(check({ ...local, healthCheckNodePort: 0 }), null);
  t.same(check({ ...local, loadBalancer: [], type: 'LoadBalancer' }), {
    service: 'default/svc',
    port: 31000,
    localEndpoints: 1,
  });
  t.equal(check(local, { family: 'IPv6' }), null, 'not in a family without cluster IP');
  const count = (endpoints: readonly EndpointText[]): unknown =>
    check(local, { slices: [slice('svc', endpoints, { ports: [{}, { port: 81 }] })] });
  const onMe = (host: number, state = 'rs'): EndpointText => ({ address: `10.0.0.${host}`, node: 'me', state });
  t.match(count([onMe(1), onMe(2), onMe(3), onMe(4, '')]), { localEndpoints: 3 }, 'PF-126: three ready, one not');
  t.match(
    count([onMe(1, 'st'), onMe(2, 's'), onMe(3, 't'), THERE]),
    { localEndpoints: 0 },
    'PF-126: terminating or unready',
  );
  t.match(count([onMe(1, 'rst')]), { localEndpoints: 1 }, 'SE-04: ready and terminating is ready');
  t.end();
});

t.test('SV-08: policy Local counts for externally reachable Services', (t) => {
  const local = { externalTrafficPolicy: 'Local' } as const;
  const nodePort = frontend('NodePort', { ...local, ports: [{ nodePort: 30000 }] });
  t.same(nodePort.localEndpoints?.toStrings(), ['10.0.0.1:80']);
  t.equal(nodePort.masquerade, 'node');
  const external = frontend('ExternalIP', { ...local, externalIPs: ['1.1.1.1'] });
  t.same(external.localEndpoints?.toStrings(), ['10.0.0.1:80'], 'ClusterIP with external IPs');
  const odd = frontend('LoadBalancer', { ...local, type: 'ClusterIP', loadBalancer: ['2.2.2.2'] });
  t.equal(odd.localEndpoints, null, 'ClusterIP without');
  t.equal(odd.masquerade, 'always');
  t.end();
});

t.test('VD-02 to VD-04: cluster IPs are planned by policy and endpoints', (t) => {
  const cluster = frontend('ClusterIP', {});
  t.same(cluster.endpoints.toStrings(), ['10.0.0.1:80', '10.0.0.2:80']);
  t.same([cluster.localEndpoints, cluster.masquerade, cluster.sourceRanges], [null, 'off-cluster', null]);
  const local = { internalTrafficPolicy: 'Local' } as const;
  t.same(frontend('ClusterIP', local).endpoints.toStrings(), ['10.0.0.1:80']);
  const elsewhere = frontend('ClusterIP', local, { slices: [slice('svc', [THERE])] });
  t.same([elsewhere.endpoints.count, elsewhere.whenEmpty], [0, 'drop'], 'no fallback');
  const nowhere = frontend('ClusterIP', local, { slices: [] });
  t.same([nowhere.endpoints.count, nowhere.whenEmpty], [0, 'reject']);
  t.end();
});

t.test('VD-01, VD-05 to VD-09: external frontends are planned by policy and endpoints', (t) => {
  const text: ServiceText = { externalIPs: ['1.1.1.1'], loadBalancer: ['2.2.2.2'], ports: [{ nodePort: 30000 }] };
  const kinds = ['ExternalIP', 'LoadBalancer', 'NodePort'] as const;
  for (const kind of kinds) {
    const cluster = frontend(kind, text);
    t.same(cluster.endpoints.toStrings(), ['10.0.0.1:80', '10.0.0.2:80']);
    t.same([cluster.localEndpoints, cluster.masquerade, cluster.whenEmpty], [null, 'always', 'reject'], kind);
    const policy = { ...text, externalTrafficPolicy: 'Local' } as const;
    const local = frontend(kind, policy);
    t.same(local.endpoints.toStrings(), ['10.0.0.1:80', '10.0.0.2:80'], 'pods and the node reach all');
    t.same(local.localEndpoints?.toStrings(), ['10.0.0.1:80']);
    t.equal(local.masquerade, 'node');
    const elsewhere = frontend(kind, policy, { slices: [slice('svc', [THERE])] });
    t.same([elsewhere.localEndpoints?.count, elsewhere.whenEmpty], [0, 'drop']);
    for (const which of [text, policy]) {
      const nowhere = frontend(kind, which, { slices: [slice('svc', [{ ...THERE, state: 's' }])] });
      t.same([nowhere.endpoints.count, nowhere.whenEmpty], [0, 'reject']);
    }
  }
  t.end();
});

t.test('VD-19, SV-12: internal and external policy are independent', (t) => {
  const text: ServiceText = { ports: [{ nodePort: 30000 }], internalTrafficPolicy: 'Local' };
  const slices = [slice('svc', [THERE])];
  t.same(
    frontend('NodePort', text, { slices }).endpoints.toStrings(),
    ['10.0.0.2:80'],
    'iTP Local leaves node ports alone',
  );
  t.same(frontend('ClusterIP', text, { slices }).endpoints.toStrings(), []);
  const external: ServiceText = { ports: [{ nodePort: 30000 }], externalTrafficPolicy: 'Local' };
  const cluster = frontend('ClusterIP', external, { slices });
  t.same(
    [cluster.endpoints.toStrings(), cluster.whenEmpty],
    [['10.0.0.2:80'], 'reject'],
    'eTP Local leaves cluster IPs alone',
  );
  const both = frontend('NodePort', { ...external, internalTrafficPolicy: 'Local' }, { slices });
  t.same([both.endpoints.toStrings(), both.localEndpoints?.toStrings()], [['10.0.0.2:80'], []]);
  t.end();
});

t.test('SV-06, VD-11 to VD-13: source ranges are planned', (t) => {
  const text: ServiceText = {
    externalIPs: ['1.1.1.1'],
    loadBalancer: ['2.2.2.2', '3.3.3.3'],
    ports: [{ nodePort: 30000 }],
  };
  const ranges = (sourceRanges: readonly string[], fields: ServiceText = {}): readonly string[] | null | undefined =>
    frontends({ ...text, ...fields, sourceRanges }).find(({ kind }) => kind === 'LoadBalancer')?.sourceRanges;
  t.equal(ranges([]), null);
  t.same(ranges(['203.0.113.0/25']), ['203.0.113.0/25'], 'the node is not inside');
  t.same(ranges(['192.168.0.0/24', '203.0.113.0/25']), [
    '192.168.0.0/24',
    '2.2.2.2/32',
    '203.0.113.0/25',
    '3.3.3.3/32',
  ]);
  t.equal(ranges(['203.0.113.0/25', '0.0.0.0/0']), null, 'length 0 admits all');
  t.equal(ranges(['2001:db8::/32']), null, 'the other family only: no filter');
  t.same(ranges(['2001:db8::/32', '10.0.0.0/8']), ['10.0.0.0/8']);
  t.same(ranges(['::/0', '10.0.0.0/8']), ['10.0.0.0/8'], 'length 0 of the other family says nothing here');
  t.same(ranges(['10.0.0.0/8', '10.1.0.0/16', '10.0.0.0/8', '10.255.255.255/32', '11.0.0.0/9']), [
    '10.0.0.0/8',
    '11.0.0.0/9',
  ]);
  t.same(
    ranges(['192.0.0.0/2', '2.2.2.0/24']),
    ['192.0.0.0/2', '2.2.2.0/24', '3.3.3.3/32'],
    'balancer addresses nest, too',
  );
  t.same(
    ranges(['192.168.0.2/32'], { loadBalancer: ['2.2.2.2', { address: address('3.3.3.3'), ipMode: 'Proxy' }] }),
    ['192.168.0.2/32', '2.2.2.2/32'],
    'an address that the balancer keeps is not admitted',
  );
  for (const found of frontends({ ...text, sourceRanges: ['203.0.113.0/25'] })) {
    t.equal(found.sourceRanges !== null, found.kind === 'LoadBalancer', found.key);
  }
  const unknown = planSettings();
  const row = service('svc', { ...text, sourceRanges: ['0.0.0.0/1', '128.0.0.0/1'] });
  const stranger = planService('IPv4', row, [], nodeFacts(unknown, undefined), unknown);
  t.same(
    stranger?.frontends[1]?.sourceRanges,
    ['0.0.0.0/1', '128.0.0.0/1'],
    'a node without known addresses is in no range',
  );
  t.end();
});

t.test('an address that a Service names twice is one frontend', (t) => {
  const text: ServiceText = {
    clusterIPs: ['10.96.0.10'],
    externalIPs: ['10.96.0.10', '2.2.2.2', '1.1.1.1', '1.1.1.1'],
    loadBalancer: ['2.2.2.2', '2.2.2.2'],
    sourceRanges: ['203.0.113.0/25'],
  };
  t.same(keys(text), ['ClusterIP 10.96.0.10:80/TCP', 'LoadBalancer 2.2.2.2:80/TCP', 'ExternalIP 1.1.1.1:80/TCP']);
  t.same(frontend('LoadBalancer', text).sourceRanges, ['203.0.113.0/25'], 'source ranges are not lost');
  t.same(keys({ ports: [{ name: 'a' }, { name: 'b' }] }), ['ClusterIP 10.96.0.10:80/TCP']);
  t.end();
});

t.test('affinity, flows and hairpin are planned', (t) => {
  t.equal(frontend('ClusterIP', {}).affinitySeconds, null);
  t.equal(frontend('ClusterIP', { affinitySeconds: 10_800 }).affinitySeconds, 10_800);
  const endpoints = [
    HERE,
    { ...THERE, state: 'st' },
    { address: '10.0.0.3', state: 't' },
    { address: '10.0.0.4', state: 's' },
  ];
  const flows = (protocol: 'TCP' | 'UDP' | 'SCTP'): readonly string[] | undefined => {
    const slices = [slice('svc', endpoints, { ports: [{ protocol }] })];
    const text: ServiceText = { ports: [{ protocol }], internalTrafficPolicy: 'Local' };
    return frontend('ClusterIP', text, { slices }).flowEndpoints?.toStrings();
  };
  t.equal(flows('TCP'), undefined);
  for (const protocol of ['UDP', 'SCTP'] as const)
    t.same(
      flows(protocol),
      ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.4:80'],
      'every serving endpoint, whatever the policy',
    );
  const ports = [{ name: 'a' }, { name: 'b', port: 81 }];
  const slices = [slice('svc', [{ address: '10.0.0.9', node: 'me' }, HERE, THERE], { ports })];
  t.same(plan(service('svc', { ports }), { slices })?.hairpinAddresses, ['10.0.0.1', '10.0.0.9'], 'once, sorted');
  t.end();
});

t.test('a Service with more than 16 frontends has 16 rooms for clients', (t) => {
  const rooms = (count: number, text: ServiceText = {}, environment: Environment = {}): readonly string[] => {
    const ports = Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: 100 + index }));
    const planned = frontends({ affinitySeconds: 60, ports, ...text }, environment);
    return planned.map(({ key, clientRoom }) => `${key} ${clientRoom ?? 'none'}`);
  };
  t.ok(rooms(16).every((line) => line.endsWith(' none')));
  t.ok(rooms(17, { affinitySeconds: null }).every((line) => line.endsWith(' none')));
  const many = rooms(40);
  t.equal(new Set(many.map((line) => line.split(' ')[1])).size, 16);
  t.equal(many[19], '10.96.0.10:119/TCP 10.96.0.10:103/TCP');
  const externalIPs = Array.from({ length: 16 }, (_, index) => `198.51.100.${index}`);
  t.same(
    new Set(rooms(1, { externalIPs }).map((line) => line.split(' ')[1])),
    new Set(['10.96.0.10:100/TCP']),
    'all frontends of a port share one',
  );
  t.end();
});

t.test('SV-22: each endpoint list of a port has one key for all frontends', (t) => {
  const clients = (text: ServiceText, endpoints = [HERE, THERE], environment: Environment = {}): readonly string[] => {
    const keys = frontends({ affinitySeconds: 60, ...text }, { slices: [slice('svc', endpoints)], ...environment }).map(
      ({ clientKeys }) => {
        if (clientKeys === null) return 'its own';
        const { cluster, local } = clientKeys;
        if (local === null) return cluster;
        return `${cluster} and ${local.key} of ${local.endpoints.toStrings().join()} apart ${local.apart.toStrings().join()}`;
      },
    );
    return [...new Set(keys)];
  };
  const local = { internalTrafficPolicy: 'Local' } as const;
  const outside = { externalTrafficPolicy: 'Local' } as const;
  const ports = [{ nodePort: 30080 }];
  const balanced = { loadBalancer: ['2.2.2.2'], ports };
  t.same(clients({}), ['its own']);
  t.same(clients(local), ['its own'], 'one list');
  t.same(clients({ ...balanced, affinitySeconds: null }), ['its own']);
  t.same(clients(balanced), ['10.96.0.10:80/TCP'], 'one list');
  const here = 'of 10.0.0.1:80 apart ';
  t.same(clients({ ...balanced, ...outside }), [`10.96.0.10:80/TCP and 2.2.2.2:80/TCP ${here}`]);
  t.same(clients({ ports, ...outside }), [`10.96.0.10:80/TCP and nodeport:30080/TCP ${here}`]);
  t.same(clients({ ...balanced, ...local }), [`2.2.2.2:80/TCP and 10.96.0.10:80/TCP ${here}`]);
  t.same(clients({ ports, ...local, ...outside }), [`nodeport:30080/TCP and 10.96.0.10:80/TCP ${here}`]);
  t.same(
    clients({ ports, ...outside }, [{ ...HERE, state: 'st' }, THERE]),
    [`10.96.0.10:80/TCP and nodeport:30080/TCP ${here}10.0.0.1:80`],
    'a terminating one is the last resort of one list only',
  );
  t.same(
    clients({ externalIPs: ['10.96.0.10'], ...local }),
    ['its own'],
    'an address of the Service twice is one frontend',
  );
  t.same(
    clients({ externalIPs: ['1.1.1.1'], ...local }, [HERE, THERE], { settings: { allowExternalIPs: false } }),
    ['its own'],
    'frontends that are not admitted do not count',
  );
  t.end();
});

t.test('a dual-stack Service is planned for each family separately', (t) => {
  const text: ServiceText = {
    clusterIPs: ['10.96.0.10', 'fd00::1'],
    loadBalancer: ['2.2.2.2'],
    externalTrafficPolicy: 'Local',
  };
  const slices = [
    slice('svc', [HERE]),
    slice('svc', [{ address: 'fd00:10::1' }, { address: 'fd00:10::2', node: 'me' }]),
  ];
  t.same(
    frontends(text, { slices, family: 'IPv6' }).map(({ key, endpoints }) => [key, endpoints.toStrings()]),
    [['[fd00::1]:80/TCP', ['[fd00:10::1]:80', '[fd00:10::2]:80']]],
  );
  t.same(
    frontends(text, { slices }).map(({ key, endpoints }) => [key, endpoints.toStrings()]),
    [
      ['10.96.0.10:80/TCP', ['10.0.0.1:80']],
      ['2.2.2.2:80/TCP', ['10.0.0.1:80']],
    ],
  );
  t.same(plan(service('svc', text), { slices, family: 'IPv6' })?.hairpinAddresses, ['fd00:10::1', 'fd00:10::2']);
  t.end();
});

t.test('planning does not change its input', (t) => {
  const row = service('svc', {
    externalIPs: ['9.9.9.9', '1.1.1.1'],
    sourceRanges: ['10.0.0.0/8', '9.0.0.0/8'],
    loadBalancer: ['2.2.2.2'],
  });
  const slices = [slice('svc', [THERE, HERE])];
  const before = JSON.stringify([row, slices]);
  const one = JSON.stringify(plan(row, { slices }));
  t.equal(JSON.stringify(plan(row, { slices })), one, 'and the same comes out again');
  t.equal(JSON.stringify([row, slices]), before);
  t.end();
});
