// What load balancers and probes are told: behaviour §6.1, §6.2, and docs/differences.md.
import t from 'tap';
import { inFull } from '../support/extent.js';
import { endpoint, eventually, Lab, type HttpAnswer } from '../support/lab/lab.js';
import { node, type Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type PodEndpoint } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { named } from './fault-scene.js';

const HEALTHZ = 'http://127.0.0.1:10256';
const CHECK_PORT = 32000;

function status(answer: HttpAnswer): number | string {
  return 'status' in answer ? answer.status : answer.error;
}

async function becomes(what: string, wanted: number | RegExp, ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  let last: number | string = '';
  return eventually(what, async () => {
    const answer = await ask();
    last = status(answer);
    return (typeof wanted === 'number' ? last === wanted : wanted.test(String(last))) ? answer : null;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; last: ${last}`);
  });
}

t.test('/healthz and /livez before and after the first sync', async (t) => {
  const lab = await Lab.start(t);
  const get = (path: string): Promise<HttpAnswer> => lab.http('node', HEALTHZ + path);
  const proxy = await Proxy.prepare(t, lab);
  proxy.launch();
  const early = await becomes('an answer before the first sync', 503, () => get('/healthz'));
  t.match('body' in early ? JSON.parse(early.body) : {}, { healthy: false });
  t.equal(status(await get('/livez')), 200, 'HZ-04: nothing waits');
  t.equal(status(await get('/other')), 404);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.equal(status(await get('/healthz')), 503, 'the manifests are still missing');
  t.equal(await lab.ruleset(), '', 'and nothing was put into the kernel');

  await proxy.write([]);
  await proxy.ready();
  const answer = await get('/healthz');
  t.match(answer, {
    status: 200,
    headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
  });
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
  t.match('body' in answer ? JSON.parse(answer.body) : {}, {
    lastUpdated: time,
    currentTime: time,
    nodeEligible: true,
    healthy: true,
    status: { IPv4: { lastUpdated: time, healthy: true }, IPv6: { lastUpdated: time, healthy: true } },
  });
  // HZ-08: from outside, over both families.
  for (const view of FAMILY_VIEWS) {
    t.equal(status(await lab.http('client', `http://${endpoint(view.address('node'), 10256)}/healthz`)), 200);
  }
});

t.test('health of a node with a family that cannot be synced, or that is not there', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-b', 'remote-a'], [[80, 'TCP']]);
  const get = (path: string): Promise<HttpAnswer> => lab.http('node', HEALTHZ + path);
  const web = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['remote-a'] });
  const rows = FAMILY_VIEWS.map((view) => ({
    from: 'pod-b',
    to: endpoint(view.clusterIP(41), 80),
    expect: view.kept(['remote-a'], 80),
  }));
  await t.test('a table of another process makes its family unhealthy', async (t) => {
    const owner = lab.spawn('node', ['nft', '-i']);
    owner.stdin.write('add table ip kube-proxy { flags owner; }\n');
    await eventually("the other process's table", async () => ((await lab.ruleset()).includes('owner') ? true : null));
    const proxy = await Proxy.prepare(t, lab, { config: { nftables: { syncPeriod: '1s' } } });
    await proxy.write(web);
    proxy.launch();
    const answer = await becomes('unhealthy', 503, () => get('/healthz'));
    t.match('body' in answer ? JSON.parse(answer.body) : {}, { healthy: false });
    await eventually('the other family', async () => ((await lab.ruleset()).includes('fd00:10:96::41') ? true : null));
    await checkRows(t, lab, rows.slice(1), 'one family does not wait for the other');
    // It calls nobody stuck before twice the sync period, which a start is faster than.
    await becomes('stuck', 503, () => get('/livez'));
    owner.kill('SIGKILL');
    await proxy.ready();
    await checkRows(t, lab, rows, 'once the table is free');
    t.equal(status(await get('/livez')), 200);
    t.equal(proxy.log.match(/"sync failed, will be retried"/g)?.length, 1, 'said once');
  });
  await t.test('rules follow at once when the other process leaves, and until then it is named', async (t) => {
    const owner = lab.spawn('node', ['nft', '-i']);
    owner.stdin.write('delete table ip kube-proxy\nadd table ip kube-proxy { flags owner; }\n');
    await eventually("the other process's table", async () => ((await lab.ruleset()).includes('owner') ? true : null));
    // The loop would retry after half a minute.
    const proxy = await Proxy.prepare(t, lab, { config: { nftables: { minSyncPeriod: '30s', syncPeriod: '1h' } } });
    await proxy.write(web);
    proxy.launch();
    const at = { lab, proxy };
    const says = [
      /rules of IPv4 cannot be written, .*EPERM.*another process owns the table \(flags owner, netlink port \d+\)/,
      /remedy: end that process/,
    ];
    await named(t, at, { command: ['status'], says });
    t.notMatch(proxy.log, /CAP_NET_ADMIN/);
    owner.kill('SIGKILL');
    const left = performance.now();
    await proxy.ready();
    const waited = performance.now() - left;
    t.ok(waited < 20_000, `${waited} ms`);
    await checkRows(t, lab, rows, 'once the table is free');
  });
  await t.test('ST-30: a node without IPv6 is healthy with IPv4', async (t) => {
    await lab.output('node', ['nft', 'flush', 'ruleset']);
    await lab.sysctl('node', 'net/ipv6/conf/all/disable_ipv6', '1');
    const proxy = await Proxy.prepare(t, lab);
    await proxy.write(web);
    proxy.launch();
    await becomes('healthy', 200, () => get('/healthz'));
    await checkRows(t, lab, rows.slice(0, 1));
    t.notMatch(await lab.ruleset(), /table ip6/);
  });
});

t.test('a Node that is about to be removed fails /healthz', inFull, async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab);
  const get = (path: string): Promise<HttpAnswer> => lab.http('node', HEALTHZ + path);
  const plain = node(NODE_NAME, { addresses: Object.values(ADDRESSES.node) });
  const changed = (section: 'spec' | 'metadata', fields: Readonly<Record<string, unknown>>): Manifest => ({
    ...plain,
    [section]: { ...(plain[section] as object), ...fields },
  });
  const states: readonly [shows: string, manifest: Manifest, eligible: boolean][] = [
    [
      'tainted',
      changed('spec', { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' }] }),
      false,
    ],
    ['taint removed', plain, true],
    ['another taint', changed('spec', { taints: [{ key: 'other', effect: 'NoExecute' }] }), true],
    ['being deleted', changed('metadata', { deletionTimestamp: '2024-05-01T00:00:00Z' }), false],
    ['back', plain, true],
  ];
  for (const [shows, manifest, eligible] of states) {
    proxy.replaceNode(manifest);
    await proxy.apply([]);
    const answer = await becomes(shows, eligible ? 200 : 503, () => get('/healthz'));
    t.match('body' in answer ? JSON.parse(answer.body) : {}, { nodeEligible: eligible, healthy: true }, shows);
    t.equal(status(await get('/livez')), 200, `${shows}: /livez does not mind`);
  }
});

t.test('health check node ports answer with the count of local endpoints', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'pod-b', 'remote-a'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab);
  const loadBalancer = (
    endpoints: readonly (PodEndpoint | 'pod-a' | 'pod-b' | 'remote-a')[],
    port = CHECK_PORT,
    externalTrafficPolicy: 'Cluster' | 'Local' = 'Local',
  ): Manifest[] =>
    dualStack('web', {
      number: 41,
      loadBalancers: [3],
      externalTrafficPolicy,
      healthCheckNodePort: port,
      ports: [
        { name: 'http', port: 80 },
        { name: 'other', port: 81, targetPort: 80 },
      ],
      endpoints,
    });
  const ask = (port = CHECK_PORT, address: string = ADDRESSES.node.IPv4): Promise<HttpAnswer> =>
    lab.http('client', `http://${endpoint(address, port)}/anything`, 500);
  const expectCheck = async (shows: string, wanted: 200 | 503, localEndpoints: number): Promise<void> => {
    for (const view of FAMILY_VIEWS) {
      const answer = await becomes(`${shows}, ${view.family}`, wanted, () => ask(CHECK_PORT, view.address('node')));
      t.match(
        answer,
        {
          status: wanted,
          headers: {
            'content-type': 'application/json',
            'x-content-type-options': 'nosniff',
            'x-load-balancing-endpoint-weight': String(localEndpoints),
          },
          body: `{\n\t"service": {\n\t\t"namespace": "default",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": ${localEndpoints},\n\t"serviceProxyHealthy": true\n}`,
        },
        `${shows}, ${view.family}`,
      );
    }
  };
  const stopping = { ready: false, serving: true, terminating: true } as const;
  await proxy.apply(loadBalancer(['pod-a', 'pod-b', 'remote-a']));
  await expectCheck('two local endpoints', 200, 2);
  t.match(status(await ask(CHECK_PORT, ADDRESSES.alternate.IPv4)), /refused/i, 'SH-01: on node port addresses only');
  await proxy.apply(loadBalancer(['pod-b', 'remote-a']));
  await expectCheck('one local endpoint', 200, 1);
  await proxy.apply(loadBalancer([{ pod: 'pod-b', ...stopping }, { pod: 'remote-a' }]));
  await expectCheck('E-24 terminating', 503, 0);
  await checkRows(t, lab, [
    {
      shows: 'E-24 still forwarding',
      from: 'client',
      to: endpoint(IPV4.loadBalancerIP(3), 80),
      expect: IPV4.kept(['pod-b'], 80),
    },
  ]);
  await proxy.apply(loadBalancer(['remote-a']));
  await expectCheck('none local', 503, 0);
  await proxy.apply(loadBalancer([]));
  await expectCheck('none at all', 503, 0);
  await proxy.apply(loadBalancer(['pod-a'], CHECK_PORT + 1));
  await becomes('port changed: the new one', 200, () => ask(CHECK_PORT + 1));
  await becomes('port changed: the old one', /refused/i, () => ask());
  await proxy.apply(loadBalancer(['pod-a'], CHECK_PORT, 'Cluster'));
  await becomes('E-28 policy Cluster has none', /refused/i, () => ask());
  await proxy.apply(loadBalancer(['pod-a']));
  await expectCheck('E-28 back to Local', 200, 1);
  await proxy.stop('SIGTERM');
  proxy.launch();
  await proxy.ready();
  await expectCheck('after a restart', 200, 1);
  await proxy.apply([]);
  await becomes('Service gone', /refused/i, () => ask());
});

t.test('SH-01: health checks on loopback, where nodePortAddresses have it', async (t) => {
  const lab = await Lab.start(t);
  const config = { nodePortAddresses: ['127.0.0.0/8', `${ADDRESSES.alternate.IPv4}/32`, '::1/128'] };
  const objects = dualStack('web', {
    number: 41,
    loadBalancers: [3],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: CHECK_PORT,
    ports: [{ port: 80 }],
    endpoints: ['pod-a'],
  });
  await Proxy.start(t, lab, { config, objects });
  for (const [address, wanted] of [
    ['127.0.0.1', 200],
    ['::1', 200],
    [ADDRESSES.alternate.IPv4, 200],
    [ADDRESSES.node.IPv4, /refused/i],
    [ADDRESSES.node.IPv6, /refused/i],
  ] as const) {
    await becomes(address, wanted, () => lab.http('node', `http://${endpoint(address, CHECK_PORT)}/`, 500));
    t.pass(address);
  }
});
