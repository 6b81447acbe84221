// What is refused, what is warned of, and what is let through: by reviews as an API server sends them, in a cluster that is known.
import t from 'tap';
import { judge } from '../src/judge.js';
import { PlannedCluster } from '../../../src/plan/planned-cluster.js';
import { ObservedCluster, OBSERVED_KINDS } from '../src/observed-cluster.js';
import { DEFAULT_POLICY, readPolicy, type ServicePolicy } from '../src/policy.js';
import { BadReview, printAnswer, readReview, type Verdict } from '../src/review.js';
import { nodeObject, serviceCIDRObject, serviceObject, type ApiObject } from '../../../test/support/api-objects.js';
import { cpuTime } from '../../../test/support/cpu-time.js';
import { fieldsOf } from '../../../test/support/deploy/kustomize.js';
import { RecordingLog } from '../../../test/support/recording-log.js';
import { prefix } from '../../../test/support/rows.js';
import { loadBalancer, external, recorded } from './recorded.js';

const OLD = '2020-01-01T00:00:00Z';

function other(name: string, spec: ApiObject, rest: ApiObject = {}): ApiObject {
  return serviceObject(name, spec, {
    ...rest,
    metadata: { name, namespace: 'other', creationTimestamp: OLD },
  });
}

/** With a Node, a range of Services, and Services of somebody else's. */
function cluster(...more: readonly ApiObject[]): ObservedCluster {
  const made = new ObservedCluster([prefix('10.98.0.0/16')], new RecordingLog());
  const services = [
    other(
      'ingress',
      { clusterIP: '10.96.0.20', type: 'LoadBalancer', externalIPs: ['198.51.100.1'] },
      loadBalancer('203.0.113.1'),
    ),
    other('checked', {
      clusterIP: '10.96.0.21',
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 32100,
      ports: [{ port: 80, nodePort: 32101 }],
    }),
    other('elsewhere', { clusterIP: '172.30.0.9' }),
    ...more,
  ];
  for (const service of services) made.put('Service', service);
  const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] };
  made.put('Node', nodeObject('node-1', { spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'] }, status }));
  made.put('ServiceCIDR', serviceCIDRObject('kubernetes', ['10.96.0.0/16']));
  for (const kind of OBSERVED_KINDS) made.listed(kind);
  return made;
}

function verdict(review: ApiObject, policy: ServicePolicy = DEFAULT_POLICY, by = cluster()): Verdict {
  return judged(readReview(JSON.stringify(review)), { cluster: by.current, policy, names: by.names });
}

function judged(...given: Parameters<typeof judge>): Verdict {
  return inSteps(...given).verdict;
}

function inSteps(...given: Parameters<typeof judge>): { readonly verdict: Verdict; readonly pauses: number } {
  const work = judge(...given);
  for (let pauses = 0; ; pauses++) {
    const { done, value } = work.next();
    if (done === true) return { verdict: value, pauses };
  }
}

t.test('no review waits for the first plan of all Services', (t) => {
  const planned = t.capture(PlannedCluster.prototype, 'update', () => []);
  const made = cluster();
  t.equal(planned().length, 1, 'all are planned when the last kind has been read');
  t.ok(made.current);
  t.same(planned(), []);
  t.end();
});

const ALLOWED: Verdict = { refusal: null, warnings: [] };
const NEITHER = { refusal: null, warnings: [] } as const;

const REFUSED: readonly (readonly [name: string, object: ApiObject, refusal: string])[] = [
  [
    'an external IP of another Service',
    external('198.51.100.1'),
    'spec.externalIPs: 198.51.100.1:80/TCP belongs to other/ingress, the older Service',
  ],
  [
    'a balancer address as external IP',
    external('203.0.113.1'),
    'spec.externalIPs: 203.0.113.1:80/TCP belongs to other/ingress, as its load balancer address, which comes before external IP',
  ],
  ["a Node's address", external('192.0.2.1'), 'spec.externalIPs: 192.0.2.1 is an address of Node node-1'],
  [
    'an address of a ServiceCIDR',
    external('10.96.9.9'),
    'spec.externalIPs: 10.96.9.9 is within the range of Services 10.96.0.0/16',
  ],
  [
    'an address of a range by flag',
    external('10.98.9.9'),
    'spec.externalIPs: 10.98.9.9 is within the range of Services 10.98.0.0/16',
  ],
  [
    'a cluster IP outside of known ranges, with a port that its Service does not use',
    { spec: { externalIPs: ['172.30.0.9'], ports: [{ port: 8080 }] } },
    'spec.externalIPs: 172.30.0.9 is the cluster IP of other/elsewhere',
  ],
  [
    "an address of a Node's pods",
    external('10.244.1.9'),
    'spec.externalIPs: 10.244.1.9 is within the range of pods 10.244.1.0/24',
  ],
  ['loopback', external('127.0.0.1'), 'spec.externalIPs[0]: "127.0.0.1": is a loopback address and left out'],
  ['link-local', external('fe80::1'), 'spec.externalIPs[0]: "fe80::1": is a link-local address and left out'],
  ['multicast', external('224.0.0.1'), 'spec.externalIPs[0]: "224.0.0.1": is a multicast address and left out'],
  ['unspecified', external('0.0.0.0'), 'spec.externalIPs[0]: "0.0.0.0": is the unspecified address and left out'],
  [
    'ranges that cannot be read',
    { spec: { loadBalancerSourceRanges: ['192.0.2.0/24', 'office'] } },
    'spec.loadBalancerSourceRanges[1]: "office": is not a prefix such as "192.0.2.0/24" and left out',
  ],
  [
    'ranges that admit no client',
    { spec: { loadBalancerSourceRanges: ['0.0.0.0/32', '127.0.0.0/8'] } },
    'spec.loadBalancerSourceRanges: 0.0.0.0/32,127.0.0.0/8 admit no client over IPv4: no packet comes from there',
  ],
  [
    'a health check port that is a node port',
    { spec: { externalTrafficPolicy: 'Local', healthCheckNodePort: 32101 } },
    'spec.healthCheckNodePort: 32101 is a node port of other/checked already',
  ],
  [
    'a health check port of two',
    { spec: { externalTrafficPolicy: 'Local', healthCheckNodePort: 32100 } },
    'spec.healthCheckNodePort: 32100 is the health check port of other/checked already',
  ],
  [
    'a node port that is a health check port',
    { spec: { ports: [{ port: 80, nodePort: 32100 }] } },
    'spec.ports: 32100 is the health check port of other/checked already',
  ],
  [
    'a node port of another',
    { spec: { ports: [{ port: 80, nodePort: 32101 }] } },
    'spec.ports: nodeport:32101/TCP belongs to other/checked, the older Service',
  ],
  [
    'several at once',
    external('127.0.0.1', '192.0.2.1'),
    'spec.externalIPs[0]: "127.0.0.1": is a loopback address and left out; spec.externalIPs: 192.0.2.1 is an address of Node node-1',
  ],
];

for (const [name, object, refusal] of REFUSED) {
  t.test(`a review is refused: ${name}`, (t) => {
    t.match(verdict(recorded('create', { object })), { refusal });
    t.match(verdict(recorded('update', { object })), { refusal }, 'by a change, too');
    const kept = verdict(recorded('update', { object, oldObject: object }));
    t.equal(kept.refusal, null, 'what was there before may stay');
    t.equal(kept.warnings.length, refusal.split('; ').length, 'with a warning');
    for (const warning of kept.warnings) t.ok(warning.length <= 120, warning);
    t.match(verdict(recorded('delete', { oldObject: object })), NEITHER, 'and can go');
    t.end();
  });
}

function externals(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `8.8.${index >> 8}.${index & 255}`);
}

/** Of so many ports and as many external IPs. */
function product(count: number, ...more: readonly string[]): ApiObject {
  const { object } = fieldsOf(recorded('create')['request']);
  const spec = {
    ...fieldsOf(fieldsOf(object)['spec']),
    ports: Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1, protocol: 'TCP' })),
    externalIPs: [...externals(count), ...more],
  };
  return { ...fieldsOf(object), spec };
}

function asking(name: 'create' | 'update', objects: ApiObject): ApiObject {
  const review = recorded(name);
  return { ...review, request: { ...fieldsOf(review['request']), ...objects } };
}

function policyOf(text: string): ServicePolicy {
  return readPolicy(`apiVersion: admission.pointsman.io/v1alpha1\nkind: ServicePolicy\n${text}\n`, () => undefined);
}

t.test('a review of a large Service pauses between its steps, others do not', (t) => {
  const by = cluster();
  const pauses = (review: ApiObject): number =>
    inSteps(readReview(JSON.stringify(review)), { cluster: by.current, policy: DEFAULT_POLICY, names: by.names })
      .pauses;
  t.equal(pauses(asking('create', { object: external('198.51.100.1') })), 0);
  const large = product(90);
  const ofOne = pauses(asking('create', { object: large }));
  t.ok(ofOne > 8, `${ofOne}`);
  const change = { object: product(91), oldObject: large };
  t.ok(pauses(asking('update', change)) > 1.5 * ofOne, 'both versions');
  const review = asking('update', { object: large });
  const { object } = fieldsOf(review['request']);
  const oldObject = { ...fieldsOf(object), metadata: { ...fieldsOf(fieldsOf(object)['metadata']), managedFields: [] } };
  const patch = { ...review, request: { ...fieldsOf(review['request']), oldObject } };
  t.equal(pauses(patch), ofOne, 'a version that asks for the same is not judged');
  t.end();
});

t.test('no step of a review reads more than some hundred addresses', (t) => {
  const by = cluster(other('wide', { clusterIP: '10.96.0.30', externalIPs: externals(5000) }));
  const most = 5000;
  const [object, oldObject] = [external(...externals(most)), external(...externals(most).slice(1))];
  const change = recorded('update', { object, oldObject });
  const { verdict, pauses } = inSteps(readReview(JSON.stringify(change)), {
    cluster: by.current,
    policy: policyOf('allowedExternalIPs: []'),
    names: by.names,
  });
  // Each version has conflicts, places of addresses, and addresses of no permission.
  const parts = most / 500;
  t.ok(pauses >= 2 * 3 * parts, `${pauses} pauses`);
  t.match(verdict.refusal, '8.8.0.0 is none that namespace');
  t.notMatch(verdict.refusal, '8.8.0.1', 'the other addresses were there before');
  t.match(verdict.warnings.at(-1), `and ${2 * (most - 1) - 10} more`);
  t.end();
});

t.test('a Service with too many ports and addresses is refused before it is planned', async (t) => {
  const by = cluster();
  const strict = policyOf('allowedExternalIPs: []');
  let found: Verdict = ALLOWED;
  // Planned, they take seconds and hundreds of megabytes.
  const ms = await cpuTime(() => {
    found = verdict(asking('create', { object: product(1000) }), strict, by);
  });
  t.match(found, {
    refusal: /^spec\.ports: 1000 ports and addresses make 1001000 frontends over IPv4, of which a Ser/,
  });
  t.ok(ms < 1000, `${ms} ms`);
  const lax = policyOf('rules: { frontends: Ignore }\nallowedExternalIPs: []');
  const object = product(1000);
  t.match(verdict(asking('create', { object }), lax, by), { refusal: /8\.8\.0\.0 is none/ }, 'grants hold for all');
  const taken = verdict(asking('create', { object: product(1000, '192.0.2.1') }), DEFAULT_POLICY, by);
  t.match(taken, { refusal: /address of Node node-1/ });
  const fewer = verdict(asking('update', { object: product(999), oldObject: object }), DEFAULT_POLICY, by);
  t.match(fewer, { refusal: null, warnings: [/frontends/] }, 'what was there before may become less');
  t.same(verdict(asking('create', { object: product(60) })), ALLOWED, 'within the limit');
  const long = verdict(
    asking('create', { object: product(1, ...Array.from({ length: 20_000 }, () => '8.8.8.8')) }),
    lax,
    by,
  );
  t.match(
    long,
    { refusal: 'spec.externalIPs: has 20001 entries, of which a Service has at most 10000' },
    'by length alone',
  );
  const kept = { object: product(1, ...Array.from({ length: 20_000 }, () => '8.8.8.8')) };
  t.match(verdict(asking('update', { ...kept, oldObject: kept.object }), DEFAULT_POLICY, by), { refusal: null });
});

t.test('source ranges of one family give a warning, as all clients of the other family are admitted', (t) => {
  const both = { ipFamilies: ['IPv4', 'IPv6'], clusterIPs: ['10.96.0.11', 'fd00::11'], clusterIP: '10.96.0.11' };
  const ranges = (...loadBalancerSourceRanges: readonly string[]): ApiObject => ({
    spec: { ...both, loadBalancerSourceRanges },
  });
  const text = 'spec.loadBalancerSourceRanges: 2001:db8::/32 have none of IPv4, so every client is admitted over IPv4';
  t.same(verdict(recorded('create', { object: ranges('2001:db8::/32') })), { refusal: null, warnings: [text] });
  t.same(verdict(recorded('create', { object: ranges('2001:db8::/32', '192.0.2.0/24') })), ALLOWED);
  t.same(verdict(recorded('create', { object: { spec: both } })), ALLOWED);
  t.end();
});

t.test('without a valid policy the webhook refuses nothing', (t) => {
  const by = cluster();
  const review = readReview(JSON.stringify(recorded('create', { object: external('198.51.100.1') })));
  t.match(judged(review, { cluster: by.current, policy: null, names: by.names }), {
    refusal: null,
    warnings: [/no usable policy/],
  });
  t.end();
});

t.test('the largest Service that a review may have is planned within a second', async (t) => {
  const by = cluster();
  const review = asking('update', { object: product(99), oldObject: product(99, '8.9.0.0') });
  const ms = await cpuTime(() => {
    t.match(verdict(review, DEFAULT_POLICY, by), { refusal: null });
  });
  t.comment(`${ms.toFixed(0)} ms of CPU time`);
  t.ok(ms < 1000, `${ms} ms`);
});

t.test('another Service’s node port on a Node address is refused as external IP by every policy', (t) => {
  const by = cluster();
  const taken = serviceObject('taken', {
    type: 'NodePort',
    clusterIP: '10.96.0.77',
    ports: [{ port: 80, nodePort: 30_777 }],
  });
  by.put('Service', taken);
  const { object } = fieldsOf(recorded('create')['request']);
  const asked = (port: number): ApiObject => {
    const spec = {
      ...fieldsOf(fieldsOf(object)['spec']),
      externalIPs: ['192.0.2.1'],
      ports: [{ port, protocol: 'TCP' }],
    };
    return asking('create', { object: { ...fieldsOf(object), spec } });
  };
  const lax = policyOf('rules: { nodeAddresses: Ignore }');
  t.match(verdict(asked(30_777), lax, by), {
    refusal: /^spec\.externalIPs: 192\.0\.2\.1:30777\/TCP is the node port of default\/taken/,
  });
  t.same(verdict(asked(30_778), lax, by), ALLOWED);
  t.end();
});

t.test('recorded reviews of valid Services are allowed', (t) => {
  for (const name of ['create', 'update', 'status', 'delete', 'dry-run'] as const)
    t.same(verdict(recorded(name)), ALLOWED, name);
  t.same(verdict(recorded('create', { object: external('198.51.100.2', '2001:db8::1') })), ALLOWED);
  const ranges = { spec: { loadBalancerSourceRanges: ['0.0.0.0/32', '192.0.2.0/24', '2001:db8::/32'] } };
  t.same(verdict(recorded('create', { object: ranges })), ALLOWED, 'some may come in');
  const proxied = {
    spec: { externalIPs: ['192.0.2.1'] },
    metadata: { labels: { 'service.kubernetes.io/service-proxy-name': 'x' } },
  };
  t.same(verdict(recorded('create', { object: proxied })), ALLOWED, 'of another proxy');
  const taken = verdict(recorded('update', { object: external('192.0.2.1'), oldObject: proxied }));
  t.match(taken, { refusal: /Node node-1/ }, 'which it is no more');
  t.end();
});

t.test('an address that moves within a list is not taken for a new one', (t) => {
  const oldObject = external('198.51.100.9', '127.0.0.1');
  t.match(verdict(recorded('update', { object: external('127.0.0.1'), oldObject })), { refusal: null });
  t.match(verdict(recorded('update', { object: external('127.0.0.2'), oldObject })), { refusal: /127\.0\.0\.2/ });
  t.end();
});

t.test('load balancer addresses in the status are checked', (t) => {
  for (const [ip, refusal] of [
    ['192.0.2.1', 'status.loadBalancer.ingress: 192.0.2.1 is an address of Node node-1'],
    ['203.0.113.1', 'status.loadBalancer.ingress: 203.0.113.1:80/TCP belongs to other/ingress, the older Service'],
    ['127.0.0.1', 'status.loadBalancer.ingress[0].ip: "127.0.0.1": is a loopback address and left out'],
  ] as const)
    t.match(verdict(recorded('status', { object: loadBalancer(ip) })), { refusal }, ip);
  const won = verdict(recorded('status', { object: loadBalancer('198.51.100.1') }));
  t.same(
    won,
    {
      refusal: null,
      warnings: [
        'status.loadBalancer.ingress: 198.51.100.1:80/TCP is claimed by other/ingress too, which does not get it',
      ],
    },
    'a balancer address comes before an external IP, and rightly',
  );
  const ending = { metadata: { deletionTimestamp: OLD }, ...external('127.0.0.1') };
  const finalized = verdict(recorded('update', { object: ending, oldObject: ending }));
  t.match(finalized, { refusal: null }, 'finalizers of a Service that goes');
  const served = verdict(recorded('update', { object: ending }));
  t.match(served, { refusal: /127\.0\.0\.1.*loopback/ }, 'which is served until it has gone');
  const proxied = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'Proxy' }] } } };
  t.same(verdict(recorded('status', { object: proxied })), ALLOWED, 'an address that nodes do not handle');
  t.end();
});

t.test('an update of an older Service that takes an address of a younger one is refused', (t) => {
  const object = { metadata: { creationTimestamp: '2019-01-01T00:00:00Z' }, ...external('198.51.100.1') };
  t.match(verdict(recorded('update', { object })), {
    refusal: 'spec.externalIPs: 198.51.100.1:80/TCP is claimed by other/ingress too, which does not get it',
  });
  const known = cluster(
    serviceObject('shop', {}, { metadata: { name: 'shop', namespace: 'shop' }, ...external('198.51.100.7') }),
  );
  t.same(verdict(recorded('create', { object: external('198.51.100.7') }), DEFAULT_POLICY, known), ALLOWED, 'its own');
  const checked = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32200 };
  const metadata = { name: 'shop', namespace: 'shop' };
  const own = cluster(serviceObject('shop', { ...checked, clusterIP: '10.96.140.7' }, { metadata }));
  t.same(
    verdict(recorded('update', { object: { spec: checked } }), DEFAULT_POLICY, own),
    ALLOWED,
    'its own health check',
  );
  t.end();
});

t.test('in a dry run, addresses and ports that the API server assigns are no reason to refuse', (t) => {
  const object = {
    spec: { clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20'], ports: [{ port: 80, nodePort: 32101 }] },
  };
  t.match(verdict(recorded('dry-run', { object })), { refusal: null, warnings: { length: 2 } });
  t.match(verdict(recorded('create', { object })), { refusal: /10\.96\.0\.20:80.*32101/ });
  t.match(verdict(recorded('dry-run', { object: external('192.0.2.1') })), { refusal: /Node node-1/ });
  t.end();
});

const POLICY = `apiVersion: admission.pointsman.io/v1alpha1
kind: ServicePolicy
`;

function policy(text: string): ServicePolicy {
  return readPolicy(POLICY + text, (warning) => {
    throw new Error(warning);
  });
}

t.test('allowedExternalIPs limits external IPs by namespace', (t) => {
  const granted = policy(`allowedExternalIPs:
  - {namespaces: [other, "sho*"], cidrs: [198.51.100.0/25, "2001:db8::/64"]}
  - {namespaces: ["*"], cidrs: [198.51.100.200/32]}
`);
  const refusal = (...addresses: readonly string[]): string | null =>
    verdict(recorded('create', { object: external(...addresses) }), granted).refusal;
  t.equal(refusal('198.51.100.2', '2001:db8::5', '198.51.100.200'), null);
  t.equal(refusal('198.51.100.201'), 'spec.externalIPs: 198.51.100.201 is none that namespace shop may have');
  t.match(refusal('2001:db8:0:1::5'), /none that namespace shop/);
  const kept = verdict(recorded('update', { object: external('8.8.8.8'), oldObject: external('8.8.8.8') }), granted);
  t.match(kept, { refusal: null, warnings: ['spec.externalIPs: 8.8.8.8 is none that namespace shop may have'] });
  t.equal(
    verdict(recorded('create', { object: external('198.51.100.2') }), policy('allowedExternalIPs: []')).refusal,
    'spec.externalIPs: 198.51.100.2 is none that namespace shop may have',
  );
  t.end();
});

t.test('rules of the policy may warn or be ignored', (t) => {
  const object = external('192.0.2.1', '10.96.9.9');
  const lenient = policy('rules: {nodeAddresses: Warn, serviceRanges: Ignore}');
  t.same(verdict(recorded('create', { object }), lenient), {
    refusal: null,
    warnings: ['spec.externalIPs: 192.0.2.1 is an address of Node node-1'],
  });
  const wrong =
    POLICY + 'rules: {conflict: Warn, ports: warn}\nallowedExternalIPs: [{namespaces: [A, "a*b"], cidrs: [x]}, {}]\n';
  t.throws(() => readPolicy(wrong, () => undefined), {
    message: [
      '[ServicePolicy.rules.ports: "warn": has the wrong case: should be "Warn"',
      'ServicePolicy.rules.conflict: is an unknown field',
      'ServicePolicy.allowedExternalIPs[0].cidrs[0]: "x": cannot be read: should be a CIDR such as 10.0.0.0/16 or 2001:db8::/64',
      'ServicePolicy.allowedExternalIPs[0].namespaces[0]: is no namespace: should be a name, maybe with * at its end',
      'ServicePolicy.allowedExternalIPs[0].namespaces[1]: is no namespace: should be a name, maybe with * at its end',
      'ServicePolicy.allowedExternalIPs[1].namespaces: is missing: should be a list of at least 1',
      'ServicePolicy.allowedExternalIPs[1].cidrs: is missing: should be a list of at least 1]',
    ].join(', '),
  });
  t.end();
});

t.test('Services are allowed with a warning until the cluster is read, and other resources always', (t) => {
  const empty = new ObservedCluster([], new RecordingLog());
  const warnings = ['pointsman has not read the cluster yet: this Service was not checked'];
  t.same(verdict(recorded('create', { object: external('127.0.0.1') }), DEFAULT_POLICY, empty), {
    refusal: null,
    warnings,
  });
  const request = { resource: { group: '', version: 'v1', resource: 'pods' } };
  t.match(verdict(recorded('create', { request })), { refusal: null, warnings: [/Services only/] });
  t.end();
});

t.test('names of watched objects are cut in the log', (t) => {
  const log = new RecordingLog();
  const name = 'ä'.repeat(1_000_000);
  new ObservedCluster([], log).put('Service', serviceObject(name, { [name]: 1, ports: name }));
  t.match(log.lines, ['info 2 an object cannot be used']);
  t.ok(JSON.stringify(log.fields).length < 3000);
  t.end();
});

t.test('reviews are judged by the current Services, Nodes and ServiceCIDRs', (t) => {
  const known = cluster();
  const refusal = (): string | null =>
    verdict(recorded('create', { object: external('198.51.100.1', '192.0.2.1', '10.99.0.1') }), DEFAULT_POLICY, known)
      .refusal;
  t.match(refusal(), /ingress.*node-1/);
  const ingress = other('ingress', { clusterIP: '10.96.0.20' });
  known.put('Service', ingress);
  known.put('Node', nodeObject('node-1', { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.2' }] } }));
  t.equal(refusal(), null);
  known.put('ServiceCIDR', serviceCIDRObject('more', ['10.99.0.0/24']));
  t.match(refusal(), /10\.99\.0\.0\/24/);
  known.remove('ServiceCIDR', serviceCIDRObject('more', []));
  known.put('Service', other('ingress', { clusterIP: '10.96.0.20', externalIPs: ['198.51.100.1'] }));
  t.match(refusal(), /other\/ingress/);
  known.put('Service', { ...ingress, spec: { clusterIP: 'x' } });
  t.match(refusal(), /other\/ingress/, 'one that cannot be used stays as it was');
  known.remove('Service', ingress);
  t.equal(refusal(), null);
  t.end();
});

t.test('malformed reviews are refused with field and reason', (t) => {
  for (const [text, problem] of [
    ['', /^no JSON: /],
    ['[]', /mapping/],
    ['{}', /^apiVersion: null: is required; kind: null: is required; request: null: is required; .*request\.uid/],
    [
      '{"apiVersion":"admission.k8s.io/v1beta1","kind":"Pod","request":{}}',
      /^apiVersion: "admission\.k8s\.io\/v1beta1": must be admission\.k8s\.io\/v1; kind: "Pod": must be/,
    ],
    [
      JSON.stringify(recorded('create', { request: { operation: 'PATCH' } })),
      'request.operation: "PATCH": must be one of CREATE, UPDATE, DELETE, CONNECT',
    ],
    [JSON.stringify(recorded('create', { request: { object: null } })), 'request.object: null: is required for CREATE'],
    [
      JSON.stringify(recorded('update', { request: { oldObject: 'x' } })),
      /^request\.oldObject: "x": must be a mapping/,
    ],
    [JSON.stringify(recorded('create', { request: { dryRun: 'yes', uid: 7 } })), /request\.uid.*request\.dryRun/],
    ['['.repeat(65), /^a review has at most 64 lists and mappings within each other$/],
    ['{"a":"[[",'.repeat(65), /^a review has at most 64 /],
    [`[${'"[\\"{",'.repeat(400_001)}1]`, /^a review has at most 400000 values$/],
    [`[${'"[\\"{",'.repeat(399_000)}1]`, /mapping/],
    [JSON.stringify('['.repeat(100_000)), /mapping/],
  ] as const)
    t.match(
      thrown(() => readReview(text)),
      problem,
      text.slice(0, 60),
    );
  t.same(JSON.parse(printAnswer('u', { refusal: 'no', warnings: ['w'] })), {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'u', allowed: false, status: { code: 403, reason: 'Forbidden', message: 'no' }, warnings: ['w'] },
  });
  t.end();
});

t.test('a review of nested lists costs a tenth of what it would to parse it', async (t) => {
  const nested = '['.repeat(1_900_000) + ']'.repeat(1_900_000);
  const parsing = await cpuTime(() => JSON.parse(nested) as unknown);
  const review = JSON.stringify(recorded('create')).replace(/"object":/, `"object":{"x":${nested}},"another":`);
  const reading = await cpuTime(() => thrown(() => readReview(review)));
  t.comment(JSON.stringify({ parsing, reading }));
  t.match(
    thrown(() => readReview(review)),
    /^a review has at most 64 /,
  );
  t.ok(reading < parsing / 10, `${reading} of ${parsing} ms`);
  // Flat ones are counted to their end.
  const flat = `[${'{},'.repeat(1_300_000)}1]`;
  const counting = await cpuTime(() => thrown(() => readReview(flat)));
  t.ok(counting < (await cpuTime(() => JSON.parse(flat) as unknown)) / 2, `${counting} ms`);
});

function thrown(call: () => unknown): string {
  try {
    call();
    return '';
  } catch (error) {
    return error instanceof BadReview ? error.message : `not a BadReview: ${String(error)}`;
  }
}
