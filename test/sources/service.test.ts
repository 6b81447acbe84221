import t from 'tap';
import { KEEPS_DESTINATION, REPLACED_WHOLE, type ServiceRow } from '../../src/state/rows.js';
import { Interner } from '../../src/sources/translate/intern.js';
import type { Translation } from '../../src/sources/translate/metadata.js';
import { translateService } from '../../src/sources/translate/service.js';
import { serviceObject, type ApiObject } from '../support/api-objects.js';

const translate = (object: unknown): Translation<ServiceRow> => translateService(object, new Interner());

function rowOf(spec: ApiObject, rest: ApiObject = {}): ServiceRow {
  const { row } = translate(serviceObject('web', spec, rest));
  if (row === null) throw new Error('no row');
  return row;
}

t.test('a minimal Service gets the defaults of the API server', (t) => {
  const object = { metadata: { name: 'web' }, spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] } };
  const expected: ServiceRow = {
    kind: 'Service',
    namespace: 'default',
    name: 'web',
    creationTime: null,
    type: 'ClusterIP',
    clusterIPs: ['10.96.0.1'] as unknown as ServiceRow['clusterIPs'],
    ipFamilies: ['IPv4'],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    affinitySeconds: null,
    healthCheckNodePort: 0,
    connectRetry: null,
    udpRetry: null,
    loadBalancerFlags: 0,
    endingConnections: null,
    ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 0 }],
  };
  t.strictSame(translate(object), {
    ref: { kind: 'Service', namespace: 'default', name: 'web' },
    row: expected,
    warnings: [],
  });
  t.end();
});

t.test('a full Service keeps every field', (t) => {
  const row = rowOf(
    {
      type: 'LoadBalancer',
      clusterIP: 'fd00::10',
      clusterIPs: ['fd00::10', '10.96.0.10'],
      ipFamilies: ['IPv6', 'IPv4'],
      externalIPs: ['192.0.2.1', '2001:db8::1', '192.0.2.1'],
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
      healthCheckNodePort: 30_100,
      loadBalancerSourceRanges: ['203.0.113.0/24', ' 2001:db8::/32 '],
      ports: [
        { name: 'dns', protocol: 'UDP', port: 53, nodePort: 30_053, targetPort: 'x', appProtocol: 'y' },
        { name: 'dns-tcp', port: 53, nodePort: 30_053 },
      ],
    },
    {
      metadata: { name: 'web', namespace: 'prod', creationTimestamp: '2025-01-31T12:00:00Z' },
      status: {
        loadBalancer: {
          ingress: [{ ip: '198.51.100.1' }, { ip: '198.51.100.2', ipMode: 'Proxy' }, { hostname: 'lb' }],
        },
      },
    },
  );
  t.equal(row.namespace, 'prod');
  t.equal(row.creationTime, Date.UTC(2025, 0, 31, 12));
  t.strictSame(row.clusterIPs, ['fd00::10', '10.96.0.10']);
  t.strictSame(row.ipFamilies, ['IPv6', 'IPv4']);
  t.strictSame(row.externalIPs, ['192.0.2.1', '2001:db8::1']);
  t.equal(row.externalTrafficPolicy, 'Local');
  t.equal(row.internalTrafficPolicy, 'Local');
  t.equal(row.affinitySeconds, 60);
  t.equal(row.healthCheckNodePort, 30_100);
  t.strictSame(row.loadBalancerSourceRanges, ['203.0.113.0/24', '2001:db8::/32']);
  t.strictSame(row.loadBalancerIngress, [
    { address: '198.51.100.1', ipMode: 'VIP' },
    { address: '198.51.100.2', ipMode: 'Proxy' },
  ]);
  t.strictSame(row.ports, [
    { name: 'dns', protocol: 'UDP', port: 53, nodePort: 30_053 },
    { name: 'dns-tcp', protocol: 'TCP', port: 53, nodePort: 30_053 },
  ]);
  t.end();
});

t.test('SV-01 headless Services have no cluster IP, by either field', (t) => {
  t.strictSame(rowOf({ clusterIP: 'None' }).clusterIPs, []);
  t.strictSame(rowOf({ clusterIP: null, clusterIPs: ['None'] }).clusterIPs, []);
  t.strictSame(rowOf({ clusterIP: 'None', ports: [] }).ports, []);
  t.end();
});

t.test('SV-01 ExternalName Services need neither address nor ports', (t) => {
  const { row, warnings } = translate({
    metadata: { name: 'x' },
    spec: { type: 'ExternalName', externalName: 'example.org' },
  });
  t.equal(row?.type, 'ExternalName');
  t.strictSame(warnings.map(String), []);
  t.end();
});

t.test('SV-01 a Service without an address stays, with a warning', (t) => {
  const { row, warnings } = translate(serviceObject('web', { clusterIP: null }));
  t.strictSame(row?.clusterIPs, []);
  t.match(warnings.map(String), [/^spec\.clusterIP: null: /]);
  t.end();
});

t.test('SV-02 clusterIP, clusterIPs and ipFamilies fill each other in', (t) => {
  const table: [ApiObject, string[], string[]][] = [
    [{ clusterIP: 'fd00::1' }, ['fd00::1'], ['IPv6']],
    [{ clusterIP: null, clusterIPs: ['10.0.0.1', 'fd00::1'] }, ['10.0.0.1', 'fd00::1'], ['IPv4', 'IPv6']],
    [{ clusterIP: '10.0.0.1', clusterIPs: [] }, ['10.0.0.1'], ['IPv4']],
    [{ clusterIP: '10.0.0.1', ipFamilies: ['IPv4', 'IPv6'] }, ['10.0.0.1'], ['IPv4', 'IPv6']],
    [
      { clusterIP: 'fd00::1', clusterIPs: ['fd00::1', '10.0.0.1'], ipFamilies: ['IPv6'] },
      ['fd00::1', '10.0.0.1'],
      ['IPv6', 'IPv4'],
    ],
  ];
  for (const [spec, clusterIPs, ipFamilies] of table) {
    const row = rowOf(spec);
    t.strictSame(row.clusterIPs, clusterIPs, JSON.stringify(spec));
    t.strictSame(row.ipFamilies, ipFamilies, JSON.stringify(spec));
  }
  t.end();
});

t.test('PF-124 addresses and ranges with leading zeros are canonical', (t) => {
  const row = rowOf(
    { clusterIP: '172.30.0.041', externalIPs: ['192.168.099.022'], loadBalancerSourceRanges: ['203.0.113.000/025'] },
    { status: { loadBalancer: { ingress: [{ ip: '1.2.3.004' }] } } },
  );
  t.strictSame(row.clusterIPs, ['172.30.0.41']);
  t.strictSame(row.externalIPs, ['192.168.99.22']);
  t.strictSame(row.loadBalancerIngress, [{ address: '1.2.3.4', ipMode: 'VIP' }]);
  t.strictSame(row.loadBalancerSourceRanges, ['203.0.113.0/25']);
  t.end();
});

t.test('SV-04, SV-05 entries that are no usable address are left out with a warning', (t) => {
  const { row, warnings } = translate(
    serviceObject(
      'web',
      { externalIPs: ['nonsense', '192.0.2.1', '127.0.0.1', '0.0.0.0', '169.254.169.254', 'ff01::1'] },
      {
        status: {
          loadBalancer: { ingress: [{ ip: 'bad' }, { ip: '192.0.2.2' }, { ip: '::1' }, {}, { ip: 'fe80::1' }] },
        },
      },
    ),
  );
  t.strictSame(row?.externalIPs, ['192.0.2.1']);
  t.strictSame(row?.loadBalancerIngress, [{ address: '192.0.2.2', ipMode: 'VIP' }]);
  t.match(warnings.map(String), [
    /^spec\.externalIPs\[0\]: "nonsense": /,
    /^spec\.externalIPs\[2\]: "127.0.0.1": /,
    /^spec\.externalIPs\[3\]: "0.0.0.0": /,
    /^spec\.externalIPs\[4\]: "169.254.169.254": is a link-local address and left out$/,
    /^spec\.externalIPs\[5\]: "ff01::1": is a multicast address and left out$/,
    /^status\.loadBalancer\.ingress\[0\]\.ip: "bad": /,
    /^status\.loadBalancer\.ingress\[2\]\.ip: "::1": /,
    /^status\.loadBalancer\.ingress\[4\]\.ip: "fe80::1": /,
  ]);
  t.end();
});

t.test('SV-02 a cluster IP that no Service can have leaves its family unserved, and the other served', (t) => {
  const table: [ApiObject, string[], string[], string][] = [
    [{ clusterIP: '127.0.0.1' }, [], [], 'clusterIP: "127.0.0.1": is a loopback address'],
    [{ clusterIP: '0.0.0.0', ipFamilies: ['IPv4'] }, [], [], 'clusterIP: "0.0.0.0": is the unspecified address'],
    [
      { clusterIP: null, clusterIPs: ['::ffff:127.0.0.1', 'fd00::1'], ipFamilies: ['IPv4', 'IPv6'] },
      ['fd00::1'],
      ['IPv6'],
      'clusterIPs[0]: "::ffff:127.0.0.1": is a loopback address',
    ],
    [
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'ff02::1'] },
      ['10.0.0.1'],
      ['IPv4'],
      'clusterIPs[1]: "ff02::1": is a multicast address',
    ],
  ];
  for (const [spec, clusterIPs, ipFamilies, warning] of table) {
    const { row, warnings } = translate(serviceObject('web', spec));
    t.strictSame(row?.clusterIPs, clusterIPs, warning);
    t.strictSame(row?.ipFamilies, ipFamilies, warning);
    t.equal(warnings.length, 1, warning);
    t.match(String(warnings[0]), `spec.${warning}: the Service is not served over IPv`);
  }
  t.strictSame(rowOf({ clusterIP: '169.254.20.1' }).clusterIPs, ['169.254.20.1'], 'a ServiceCIDR may be link-local');
  t.end();
});

t.test('SV-06 ranges that cannot be read never open the Service', (t) => {
  const NO_CLIENT = ['0.0.0.0/32', '::/128'];
  const table: [string[], string[]][] = [
    [[], []],
    [['203.0.113.7/24'], ['203.0.113.0/24']],
    [['0.0.0.0/0'], ['0.0.0.0/0']],
    [
      ['203.0.113.0/24', '203.0.113/24'],
      ['203.0.113.0/24', '::/128'],
    ],
    [['203.0.113.0/33'], NO_CLIENT],
    [['2001:db8::/129'], NO_CLIENT],
    [['203.0.113.0'], NO_CLIENT],
    [['::ffff:203.0.113.9/120'], ['203.0.113.0/24']],
    [['::ffff:0.0.0.0/96'], ['0.0.0.0/0']],
    [['::ffff:203.0.113.0/95'], NO_CLIENT],
    [
      ['::ffff:203.0.113.0/95', '2001:db8::/32'],
      ['2001:db8::/32', '0.0.0.0/32'],
    ],
    [['everyone'], NO_CLIENT],
    [[''], NO_CLIENT],
    [
      ['203.0.113.0/24', 'everyone'],
      ['203.0.113.0/24', '::/128'],
    ],
    [
      ['203.0.113.0/24', '2001:db8::/x'],
      ['203.0.113.0/24', '::/128'],
    ],
    [
      ['203.0.113.0/24', '2001:db8::/32', 'everyone'],
      ['203.0.113.0/24', '2001:db8::/32'],
    ],
  ];
  for (const [given, expected] of table) {
    const { row, warnings } = translate(serviceObject('web', { loadBalancerSourceRanges: given }));
    t.strictSame(row?.loadBalancerSourceRanges, expected, JSON.stringify(given));
    const bad = given.filter((text) => !/^[\d.:a-f]+\/\d+$/.test(text) || /\/(33|95|129)$|113\/24/.test(text)).length;
    t.equal(warnings.length, bad, `${JSON.stringify(given)} warnings`);
  }
  t.end();
});

t.test('SV-09 the affinity timeout defaults to three hours', (t) => {
  t.equal(rowOf({ sessionAffinity: 'ClientIP' }).affinitySeconds, 10_800);
  t.equal(rowOf({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: {} } }).affinitySeconds, 10_800);
  t.equal(
    rowOf({ sessionAffinity: 'None', sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }).affinitySeconds,
    null,
  );
  t.end();
});

t.test('WA-02, WA-11 a Service with the label of another proxy is absent', (t) => {
  const metadata = { name: 'web', labels: { 'service.kubernetes.io/service-proxy-name': '' } };
  t.strictSame(translate(serviceObject('web', { clusterIP: 'rubbish' }, { metadata })), {
    ref: { kind: 'Service', namespace: 'default', name: 'web' },
    row: null,
    warnings: [],
  });
  t.not(translate(serviceObject('web', {}, { metadata: { ...metadata, labels: {} } })).row, null);
  t.end();
});

t.test('annotations for platforms that balance by themselves are read', (t) => {
  const flags = (annotations: unknown): number =>
    rowOf({}, { metadata: { name: 'web', annotations } }).loadBalancerFlags;
  t.equal(flags({ 'preserve-destination': 'true' }), KEEPS_DESTINATION);
  t.equal(flags({ 'preserve-destination': 'yes', winProxyOptimization: 'Disabled' }), REPLACED_WHOLE);
  t.equal(
    flags({ 'preserve-destination': 'true', winProxyOptimization: 'disabled' }),
    KEEPS_DESTINATION | REPLACED_WHOLE,
  );
  t.equal(flags({ 'preserve-destination': true, winProxyOptimization: 'enabled' }), 0);
  t.equal(flags('none'), 0);
  t.end();
});

t.test('annotations about balancing are read', (t) => {
  const read = (annotations: unknown): ServiceRow['balance'] =>
    rowOf({}, { metadata: { name: 'web', annotations } }).balance;
  const by = (annotations: unknown): unknown => read(annotations)?.by;
  t.equal(read({}), undefined);
  t.equal(read('none'), undefined);
  t.equal(by({ 'pointsman.dev/balance': 'random' }), 'random');
  t.equal(by({ 'pointsman.dev/balance': 'hash=address' }), 'address');
  t.equal(by({ 'pointsman.dev/balance': 'hash=address,port' }), 'address-port');
  t.equal(by({ 'service.cilium.io/lb-algorithm': 'maglev' }), 'address-port');
  const both = { 'pointsman.dev/balance': 'random', 'service.cilium.io/lb-algorithm': 'maglev' };
  t.equal(by(both), 'random', 'our own comes first');
  const wrong = read({ 'pointsman.dev/balance': 'x'.repeat(1000), 'service.cilium.io/lb-algorithm': 7 });
  t.equal(wrong?.by, null);
  t.match(wrong?.unreadable, [
    /^annotation pointsman\.dev\/balance is "x{61}…", must be one of random hash=address hash=address,port, and is ignored$/,
    /^annotation service\.cilium\.io\/lb-algorithm is something else than a text, must be one of random maglev, and/,
  ]);
  t.end();
});

t.test('annotations about zones are read', (t) => {
  const read = (annotations: unknown): ServiceRow['balance'] =>
    rowOf({}, { metadata: { name: 'web', annotations } }).balance;
  const spill = 'pointsman.dev/zone';
  const clients = 'pointsman.dev/zone-clients';
  t.same(read({ [spill]: 'spill' }), { by: null, spill: { clients: null }, unreadable: [] });
  t.same(read({ [spill]: 'spill', [clients]: 'a=50, b=30,eu-west-1c=20' })?.spill?.clients, [
    { zone: 'a', share: 50 },
    { zone: 'b', share: 30 },
    { zone: 'eu-west-1c', share: 20 },
  ]);
  t.equal(read({ [clients]: 'a=50' }), undefined, 'for nothing without the other');
  t.match(read({ [spill]: 'near' })?.unreadable, [/^annotation pointsman\.dev\/zone is "near", must be spill, and/]);
  const many = Array.from({ length: 65 }, (_, index) => `z${index}=1`).join();
  for (const value of ['', 'a', 'a=', 'a=-1', 'a=1,a=2', 'a=0,b=0', '=5', 'a=1;b=2', many, 5]) {
    const row = read({ [spill]: 'spill', [clients]: value });
    t.equal(row?.spill?.clients, null, JSON.stringify(value));
    t.equal(row?.unreadable.length, 1);
  }
  t.end();
});

t.test('the annotation of slow start is read', (t) => {
  const read = (value: unknown): ServiceRow['balance'] =>
    rowOf({}, { metadata: { name: 'web', annotations: { 'pointsman.dev/slow-start': value } } }).balance;
  t.equal(read('30s')?.slowStartSeconds, 30);
  t.equal(read('60m')?.slowStartSeconds, 3600);
  for (const value of ['', '0s', '30', '1h', '61m', '-1s', '1.5s', 30]) {
    t.equal(read(value)?.slowStartSeconds, undefined, JSON.stringify(value));
    t.match(read(value)?.unreadable, [/^annotation pointsman\.dev\/slow-start is .*, must be a time of 1s to 60m/]);
  }
  t.end();
});

t.test('annotations about ending connections are read', (t) => {
  const read = (annotations: unknown): ServiceRow['endingConnections'] =>
    rowOf({ clusterIP: '10.96.0.1', ports: [{ port: 80 }] }, { metadata: { name: 'web', annotations } })
      .endingConnections;
  const [reset, drain] = ['pointsman.dev/reset-removed-endpoints', 'pointsman.dev/drain'];
  t.equal(read({ other: 'x' }), null);
  t.equal(read(null), null);
  t.strictSame(read({ [reset]: 'off' }), { reset: 'off', drainSeconds: null, unreadable: [] });
  t.strictSame(read({ [reset]: 'service', [drain]: '60s' }), { reset: 'service', drainSeconds: 60, unreadable: [] });
  for (const [text, seconds] of [
    ['1s', 1],
    ['2m', 120],
    ['1h1m1s', 3661],
    ['24h', 86_400],
  ] as const)
    t.equal(read({ [drain]: text })?.drainSeconds, seconds, text);
  for (const text of ['', '0s', '1', '1.5s', '-1s', '25h', '86401s', '1s1m', 7, {}]) {
    const row = read({ [drain]: text });
    t.equal(row?.drainSeconds, null, JSON.stringify(text));
    t.match(row?.unreadable, [/annotation pointsman.dev\/drain is .*must be a duration/]);
  }
  t.match(read({ [reset]: 'on' }), { reset: null, unreadable: [/must be off or service/] });
  t.end();
});
