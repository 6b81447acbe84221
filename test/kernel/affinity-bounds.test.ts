// What session affinity of one Service costs others: neither their clients nor rules, and nothing once it is gone.
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, type Lab } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, IPV4, IPV6 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { CLUSTER_IP, LONG, PODS, laboratory, sticky, theOne } from './affinity-service.js';
import { withoutClients } from '../support/without-clients.js';

const onlyNftables = labMode() === 'nftables' ? {} : { skip: 'maps and chains of mode nftables' };

/** The kernel's bound for a set that rules write to (nft_dynset_init). */
const ROOM = 65_535;

/** Rules by chain, elements by map and set, as nft lists them. */
async function table(lab: Lab, family: 'ip' | 'ip6', command: readonly string[] = []): Promise<string> {
  return lab.output('node', ['nft', ...command, 'list', 'table', family, 'kube-proxy']);
}

async function elementCount(lab: Lab, name: string, kind: 'map' | 'set' = 'map'): Promise<number> {
  const listed = await lab.run('node', ['nft', 'list', kind, 'ip', 'kube-proxy', name]);
  return listed.stdout.match(/expires/g)?.length ?? 0;
}

t.test('a crowd of clients of one Service moves no client of another', { ...onlyNftables, ...inFull }, async (t) => {
  const lab = await laboratory(t);
  const crowded = dualStack('crowded', {
    number: 42,
    affinitySeconds: LONG,
    endpoints: PODS,
    ports: [{ protocol: 'UDP', port: 9 }],
  });
  const proxy = await Proxy.start(t, lab, { objects: [...sticky(LONG), ...crowded] });
  const before = await theOne(lab, { from: 'client', to: CLUSTER_IP }, 2);
  t.match(before, /^[a-z-]+$/);
  const script = projectFile('test/support/lab/crowd.py');
  const send = (first: string, count: number): Promise<string> =>
    lab.output('client', ['python3', '-B', script, IPV4.clusterIP(42), '9', first, String(count)]);
  const map = 'clients-10.96.0.42-udp-9';
  // A queue may drop some: the same ones again are no new clients.
  await eventually('a full map', async () => {
    await send('11.0.0.0', ROOM + 1);
    return (await elementCount(lab, map)) === ROOM || null;
  });
  await send('12.0.0.0', 50);
  t.equal(await elementCount(lab, map), ROOM, 'the kernel bounds it');
  t.equal(await theOne(lab, { from: 'client', to: CLUSTER_IP }), before, 'a client from before stays');
  t.match(await theOne(lab, { from: 'blocked', to: CLUSTER_IP }), /^[a-z-]+$/, 'a client from after is remembered');
  const counted = await lab.output('node', ['nft', 'list', 'set', 'ip', 'kube-proxy', 'unremembered-clients']);
  const [, packets] = /10\.96\.0\.42 \. udp \. 9 counter packets (\d+)/.exec(counted) ?? [];
  t.ok(Number(packets) >= 50, `those without room are counted: ${counted}`);
  t.notMatch(counted, /10\.96\.0\.41/, 'of the other Service there are none');
  const [line] = await eventually(
    'the status of the full map',
    async () => {
      const full = (await proxy.status()).families.flatMap(({ fullAffinity }) => fullAffinity);
      return full.length > 0 ? full : null;
    },
    60_000,
  );
  t.match(line, /^no room for session affinity: default\/crowded\S*, \d+ connections of clients/);
  t.match(proxy.log, /session affinity has no room for more clients.*default\/crowded/);
  // The status may be of a reading from before the last fifty.
  await eventually('the metric', async () => {
    const scraped = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    const body = 'body' in scraped ? scraped.body : '';
    const sample = /^pointsman_affinity_unremembered_connections_total\{ip_family="IPv4"\} (\d+)$/m.exec(body);
    return Number(sample?.[1]) >= 50 || null;
  });
});

t.test('a full memory of first packets moves no client', { ...onlyNftables, ...inFull }, async (t) => {
  const lab = await laboratory(t);
  await Proxy.start(t, lab, { objects: sticky(LONG) });
  const before = await theOne(lab, { from: 'client', to: CLUSTER_IP }, 2);
  // Packets would have to come within five seconds.
  const elements = Array.from(
    { length: ROOM },
    (_, index) => `11.0.${index >> 8}.${index & 255} . 4000 . 10.96.0.42 . tcp . 80 timeout 1h`,
  );
  const file = join(t.testdir(), 'elements.nft');
  const fill = async (): Promise<true | null> => {
    const room = ROOM - (await elementCount(lab, 'recent-attempts', 'set'));
    if (room === 0) return true;
    const added = elements.splice(0, room).join();
    await writeFile(file, `add element ip kube-proxy recent-attempts { ${added} }`);
    await lab.output('node', ['nft', '-f', file]);
    return null;
  };
  await eventually('a full set', fill);
  t.equal(await theOne(lab, { from: 'client', to: CLUSTER_IP }), before, 'a client from before stays');
  t.match(await theOne(lab, { from: 'blocked', to: CLUSTER_IP }), /^[a-z-]+$/, 'a client from after is remembered');
});

t.test(
  'ports of one Service share the room for clients, if they are many',
  { ...onlyNftables, ...inFull },
  async (t) => {
    const lab = await laboratory(t);
    const ports = Array.from({ length: 20 }, (_, index) => ({
      name: `p${index}`,
      protocol: 'UDP' as const,
      port: 9 + index,
    }));
    const many = dualStack('many', { number: 42, affinitySeconds: LONG, endpoints: PODS, ports });
    await Proxy.start(t, lab, { objects: [...sticky(LONG), ...many] });
    const listed = await table(lab, 'ip', ['-t']);
    const declared = [...listed.matchAll(/\tset (room-for-clients-\S+) \{\n.*?size (\d+)/gs)];
    t.equal(declared.length, 16, 'rooms');
    t.same(new Set(declared.map(([, , size]) => Number(size))), new Set([ROOM]), 'the kernel bounds each');
    const script = projectFile('test/support/lab/crowd.py');
    const send = (port: number, first: string, count: number): Promise<string> =>
      lab.output('client', ['python3', '-B', script, IPV4.clusterIP(42), String(port), first, String(count)]);
    // The ports 9 and 25 share the first room.
    await eventually('a full room', async () => {
      await send(9, '11.0.0.0', ROOM + 1);
      return (await elementCount(lab, 'room-for-clients-10.96.0.42-udp-9', 'set')) === ROOM || null;
    });
    await send(25, '12.0.0.0', 50);
    t.equal(await elementCount(lab, 'clients-10.96.0.42-udp-9'), ROOM);
    t.equal(await elementCount(lab, 'clients-10.96.0.42-udp-25'), 0, 'no room at the other port');
    const counted = await lab.output('node', ['nft', 'list', 'set', 'ip', 'kube-proxy', 'unremembered-clients']);
    const [, packets] = /10\.96\.0\.42 \. udp \. 25 counter packets (\d+)/.exec(counted) ?? [];
    t.ok(Number(packets) >= 50, `those without room are counted: ${counted}`);
    await send(10, '12.0.0.0', 50);
    t.equal(await elementCount(lab, 'clients-10.96.0.42-udp-10'), 50, 'the next port has another room');
    t.match(await theOne(lab, { from: 'client', to: CLUSTER_IP }, 3), /^[a-z-]+$/, 'and so has another Service');
  },
);

t.test('--session-affinity-ipv6-prefix treats an IPv6 network as one client', onlyNftables, async (t) => {
  const lab = await laboratory(t);
  await Proxy.start(t, lab, { objects: sticky(LONG), flags: ['--session-affinity-ipv6-prefix=64'] });
  const networks = Array.from({ length: 12 }, (_, index) => `2001:db8:205:${index + 1}::`);
  await lab.addRoute('router', '2001:db8:205::/48', ADDRESSES.client.IPv6);
  await lab.addRoute('node', '2001:db8:205::/48', ADDRESSES.router.IPv6);
  const targets = [endpoint(IPV6.clusterIP(41), 80), endpoint(IPV6.loadBalancerIP(3), 80)];
  const chosen = new Set<string>();
  for (const network of networks) {
    const names = new Set<string>();
    for (const host of ['1', '2', '8000:0:0:1']) {
      const source = `${network}${host}`.replace('::8000', ':8000');
      await lab.addAddress('client', 'eth0', `${source}/64`);
      for (const to of targets) names.add(await theOne(lab, { from: 'client', source, to }, 2));
    }
    t.equal(names.size, 1, `${network} has one endpoint: ${[...names].join()}`);
    for (const name of names) chosen.add(name);
  }
  t.ok(chosen.size > 1, `networks are remembered apart: ${[...chosen].join()}`);
  const listed = await lab.output('node', ['nft', 'list', 'map', 'ip6', 'kube-proxy', 'clients-fd00_10_96__41-tcp-80']);
  for (const network of networks) t.ok(listed.includes(`${network} `), `${network} is one of the clients`);
  t.equal(listed.match(/expires/g)?.length, networks.length, 'one entry for each network');
});

/** Services of every kind, with names, addresses and timeouts of their own. */
function everyKind(round: number): Manifest[] {
  const first = 100 + 10 * round;
  const ports = (nodePort?: number) =>
    (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      ...(nodePort === undefined ? {} : { nodePort }),
    }));
  const named = (kind: number) => ({ number: first + kind, nodePort: 30_100 + 10 * round + kind });
  const affinitySeconds = (kind: number): number => 60 + 10 * round + kind;
  const of = (kind: number, options: Partial<Parameters<typeof dualStack>[1]>): Manifest[] =>
    dualStack(`kind-${round}-${kind}`, {
      number: named(kind).number,
      endpoints: PODS,
      affinitySeconds: affinitySeconds(kind),
      ports: ports(options.type === undefined ? undefined : named(kind).nodePort),
      ...options,
    });
  const addresses = (kind: number) => ({ loadBalancers: [first + kind], externals: [first + kind] });
  return [
    ...of(0, { externals: [first] }),
    ...of(1, { type: 'NodePort' }),
    ...of(2, { type: 'LoadBalancer', ...addresses(2) }),
    ...of(3, { type: 'LoadBalancer', ...addresses(3), externalTrafficPolicy: 'Local' }),
    ...of(4, { type: 'LoadBalancer', ...addresses(4), sourceRanges: ['203.0.113.0/25'] }),
    ...of(5, { type: 'LoadBalancer', ...addresses(5), internalTrafficPolicy: 'Local' }),
    ...of(6, { type: 'LoadBalancer', ...addresses(6), externalTrafficPolicy: 'Local', endpoints: ['remote-a'] }),
    ...of(7, { type: 'NodePort', endpoints: [{ pod: 'pod-a', ready: false }] }),
    ...of(8, { type: 'NodePort', externals: [first + 8], endpoints: ['node', 'pod-b'] }),
  ];
}

/** As nft lists it, without what clients have written for the Services that stay; chains, maps and elements in the order of their names, as some were made anew. */
async function residue(lab: Lab): Promise<string> {
  const listings = await Promise.all([table(lab, 'ip', ['-s']), table(lab, 'ip6', ['-s'])]);
  return listings
    .map((listing) =>
      withoutClients(listing)
        .replaceAll(/elements = \{([^}]*)\}/g, (_, elements: string) => {
          const sorted = elements.split(',').map((element) => element.trim());
          return sorted.sort().join('\n');
        })
        .replaceAll(/\n\s*\n/g, '\n')
        .split('\n\t}\n')
        .sort()
        .join('\n\t}\n'),
    )
    .join('\n');
}

/** Of both families: a start is healthy before its first syncs are counted. */
function fullSyncs(lab: Lab): Promise<string> {
  return eventually('full syncs are counted', async () => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    const body = 'body' in answer ? answer.body : '';
    const counts = body.match(/^kubeproxy_sync_full_proxy_rules_duration_seconds_count.*$/gm) ?? [];
    return counts.length < FAMILY_VIEWS.length ? null : counts.join('\n');
  });
}

t.test('Services of every kind come and go, and leave nothing in the kernel', onlyNftables, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, {
    objects: sticky(LONG),
    config: { nftables: { minSyncPeriod: '1s', syncPeriod: '1h' } },
  });
  const manifests = await readFile(proxy.manifestFile, 'utf8');
  const [before, full] = [await residue(lab), await fullSyncs(lab)];
  for (let round = 0; round < usually(1, 3); round++) {
    await proxy.apply([...sticky(LONG), ...everyKind(round)]);
    for (const view of FAMILY_VIEWS)
      for (const kind of [0, 2, 3])
        t.match(
          await theOne(lab, { from: 'client', to: endpoint(view.externalIP(100 + 10 * round + kind), 80) }, 3),
          /^[a-z-]+$/,
        );
    t.not(await residue(lab), before);
  }
  // The Service by which the laboratory sees how far the node is has a port of each write's own: this is the first write again.
  await writeFile(`${proxy.manifestFile}~`, manifests);
  await rename(`${proxy.manifestFile}~`, proxy.manifestFile);
  let after = '';
  await eventually(
    'the tables as they were',
    async () => {
      after = await residue(lab);
      return after === before || null;
    },
    60_000,
  ).catch(() => undefined);
  t.equal(after, before, 'line by line');
  t.equal(await fullSyncs(lab), full, 'without a full sync');
});

/** The text of each chain by its name. */
async function chains(lab: Lab): Promise<ReadonlyMap<string, string>> {
  const listing = await table(lab, 'ip', ['-s']);
  const found = listing.matchAll(/\tchain (\S+) \{\n(.*?)\n?\t\}\n/gs);
  return new Map([...found].map(([, name = '', text = '']) => [name, text]));
}

const TIMEOUTS = usually(50, 300);

t.test('hundreds of affinity timeouts add no rule to a connection of another Service', onlyNftables, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG) });
  const before = await chains(lab);
  t.ok(
    (before.get('remember-clients') ?? '').split('\n').length === 6,
    before.get('remember-clients') ?? 'no such chain',
  );
  const others = Array.from({ length: TIMEOUTS }, (_, index) => {
    const name = `other-${index}`;
    const clusterIPs = [`10.96.${1 + (index >> 8)}.${index & 255}`];
    return [
      service(name, { clusterIPs, ports: [{ port: 80 }], affinitySeconds: 100 + index }),
      endpointSlice(name, [{ address: ADDRESSES['pod-a'].IPv4 }], [{ port: 80 }]),
    ];
  });
  // Several syncs.
  await proxy.apply([...sticky(LONG), ...others.flat()]);
  const after = await chains(lab);
  for (const [name, text] of before) t.equal(after.get(name), text, `chain ${name}`);
  const timeouts = [...after.keys()].flatMap((name) => /^remember-clients-(\d+)-/.exec(name)?.[1] ?? []);
  t.equal(new Set(timeouts).size, TIMEOUTS + 1, 'each timeout is there');
  t.match(await theOne(lab, { from: 'client', to: CLUSTER_IP }), /^[a-z-]+$/, 'the Service works');
});
