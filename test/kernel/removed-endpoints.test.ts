// Established connections to endpoints that are gone: docs/when-endpoints-die.md.
// needs: nft, conntrack
import type { Test } from 'tap';
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { Lab, endpoint, eventually, patience, type TCPConnection } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, IPV4, type PodEndpoint } from '../support/lab/packet-table.js';
import { Proxy, type ProxyOptions } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { SOME_WAYS, WAYS, web } from './ways.js';

/** Without a reset an idle connection lasts for ever, and a busy one for minutes. */
const LEARNS_MS = patience(60_000);
/** Longer than an address has to be absent, a reset takes, and a client is asked again. */
const STAYS_MS = patience(4000);

type Pod = keyof typeof ADDRESSES;

const pod = (name: Pod): PodEndpoint => ({ pod: name, targetKind: 'Pod' });

/** Nothing reaches the pod any more, and nobody is told: as when its node has lost power. */
async function silence(lab: Lab, name: string): Promise<void> {
  const rules = 'type filter hook input priority 0; policy drop; meta l4proto ipv6-icmp accept;';
  await lab.output(name, ['nft', '-f', '-'], `table inet silence { chain input { ${rules} }; }`);
}

interface Client {
  readonly title: string;
  readonly connection: TCPConnection;
  /** Who answers. */
  readonly pod: string;
}

async function connect(lab: Lab, from: string, to: string): Promise<Client> {
  const connection = await lab.open({ from, to });
  const answer = await connection.exchange();
  if (!('name' in answer)) throw new Error(`${from} to ${to}: ${answer.error}`);
  return { title: `${from} to ${to}`, connection, pod: answer.name };
}

/** By every way two connections to each of the pods. */
async function clients(lab: Lab, pods: readonly Pod[], ways = usually(SOME_WAYS, WAYS)): Promise<readonly Client[]> {
  const all = await Promise.all(
    FAMILY_VIEWS.flatMap((view) =>
      ways.map(async ({ from, to }) => {
        const kept: Client[] = [];
        for (const name of pods)
          for (const place of ['idle', 'busy'])
            kept.push(
              await eventually(`${place}: ${from} to ${to(view)} reaches ${name}`, async () => {
                const client = await connect(lab, from, to(view));
                if (client.pod === name) return client;
                await client.connection.close();
                return null;
              }),
            );
        return kept;
      }),
    ),
  );
  return all.flat();
}

async function world(
  t: Test,
  endpoints: readonly PodEndpoint[],
  options: ProxyOptions = {},
): Promise<{ readonly lab: Lab; readonly proxy: Proxy }> {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-a', 'remote-b', 'pod-a'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: web(endpoints), ...options });
  return { lab, proxy };
}

/** All of them end by a reset. */
async function areReset(t: Test, all: readonly Client[], removedAt: number, what: string): Promise<void> {
  const fates = await Promise.all(all.map(({ connection }) => connection.fate(LEARNS_MS)));
  for (const [index, { error }] of fates.entries()) t.equal(error, 'reset', `${what}: ${all[index]?.title ?? ''}`);
  t.comment(
    `${what}: the last of ${all.length} learnt after ${Math.round(Math.max(...fates.map(({ at }) => at)) - removedAt)} ms`,
  );
}

/** All of them go on where they are. */
async function goOn(t: Test, all: readonly Client[], what: string): Promise<void> {
  const answers = await Promise.all(all.map(({ connection }) => connection.exchange()));
  for (const [index, answer] of answers.entries())
    t.match(answer, { name: all[index]?.pod }, `${what}: ${all[index]?.title ?? ''}`);
}

t.test('connections to a removed pod are reset, idle and busy, and no others', async (t) => {
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  const all = await clients(lab, ['remote-a', 'remote-b']);
  const of = (name: Pod): readonly Client[] => all.filter((client) => client.pod === name);
  await silence(lab, 'remote-b');
  for (const [index, { connection }] of of('remote-b').entries()) if (index % 2 === 1) await connection.send();
  const removedAt = Date.now();
  await proxy.write(web([pod('remote-a')]));
  await areReset(t, of('remote-b'), removedAt, 'its pod is gone');
  await goOn(t, of('remote-a'), 'the other pod');

  await silence(lab, 'remote-a');
  await proxy.write(web([]));
  await areReset(t, of('remote-a'), Date.now(), 'the last pod is gone');
  const metrics = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  const counted = 'body' in metrics ? metrics.body : '';
  for (const { family } of FAMILY_VIEWS)
    t.match(counted, `pointsman_reset_connections_total{ip_family="${family}"} ${all.length / 2}`);
});

t.test('connections stay if their endpoint may still live', async (t) => {
  const objects = web([pod('remote-a'), pod('remote-b')]);
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  const all = await clients(lab, ['remote-a', 'remote-b'], WAYS.slice(0, 3));
  const cases: readonly (readonly [what: string, objects: readonly Manifest[]])[] = [
    ['not ready', web([pod('remote-a'), { ...pod('remote-b'), ready: false }])],
    ['terminating', web([pod('remote-a'), { ...pod('remote-b'), ready: false, serving: true, terminating: true }])],
    [
      'terminating, and serves no more',
      web([pod('remote-a'), { ...pod('remote-b'), ready: false, terminating: true }]),
    ],
    ['in a slice of another Service', [...web([pod('remote-a')]), ...other([pod('remote-b')])]],
    [
      'switched off for the Service',
      web([pod('remote-a')], { annotations: { 'pointsman.dev/reset-removed-endpoints': 'off' } }),
    ],
    ['the Service is deleted', []],
  ];
  for (const [what, changed] of cases) {
    await proxy.apply(changed);
    const fates = await Promise.all(all.map(({ connection }) => connection.fate(STAYS_MS)));
    for (const [index, { error }] of fates.entries()) t.equal(error, null, `${what}: ${all[index]?.title ?? ''}`);
    await goOn(t, all, what);
    await proxy.apply(objects);
  }
  // Back before its time is over: nothing is lost, and the next removal counts from the beginning.
  for (let round = 0; round < 3; round++) {
    await proxy.write(web([pod('remote-a')]));
    await proxy.synced();
    await proxy.apply(objects);
  }
  await goOn(t, all, 'back at once');
});

/** A Service beside the one of the tests. */
function other(endpoints: readonly PodEndpoint[]): Manifest[] {
  return dualStack('other', { number: 42, ports: [{ port: 80 }], endpoints });
}

t.test('endpoints that are no pods keep their connections, unless the Service is annotated', async (t) => {
  const vm: PodEndpoint = { pod: 'remote-b', targetKind: 'VirtualMachine' };
  const { lab, proxy } = await world(t, [{ pod: 'remote-a' }, vm]);
  const all = await clients(lab, ['remote-a', 'remote-b'], WAYS.slice(0, 2));
  await proxy.apply(web([]));
  const fates = await Promise.all(all.map(({ connection }) => connection.fate(STAYS_MS)));
  t.ok(fates.every(({ error }) => error === null));
  await goOn(t, all, 'no pods');

  const annotations = { 'pointsman.dev/reset-removed-endpoints': 'service' };
  await proxy.apply([...web([{ pod: 'remote-a' }, vm], { annotations }), ...other([vm])]);
  const elsewhere = await connect(lab, 'pod-c', endpoint(IPV4.clusterIP(42), 80));
  await proxy.apply([...web([{ pod: 'remote-a' }], { annotations }), ...other([vm])]);
  await areReset(
    t,
    all.filter((client) => client.pod === 'remote-b'),
    Date.now(),
    'it has left this Service',
  );
  await goOn(
    t,
    all.filter((client) => client.pod === 'remote-a'),
    'it is still there',
  );
  await goOn(t, [elsewhere], 'the same endpoint by another Service');
});

t.test("another tenant's slice resets no connections to an address that it calls a pod's", async (t) => {
  const vm: PodEndpoint = { pod: 'remote-b', targetKind: 'VirtualMachine' };
  const victim = (endpoints: readonly PodEndpoint[]): Manifest[] => web([pod('remote-a'), ...endpoints]);
  const { lab, proxy } = await world(t, [pod('remote-a'), vm]);
  const all = await clients(lab, ['remote-a', 'remote-b'], WAYS.slice(0, 2));
  await proxy.apply([...victim([vm]), ...other([pod('remote-b')])]);
  const own = await Promise.all(FAMILY_VIEWS.map((view) => connect(lab, 'pod-c', endpoint(view.clusterIP(42), 80))));
  const steps: readonly (readonly [what: string, objects: readonly Manifest[]])[] = [
    ['its Service drops the virtual machine', [...victim([]), ...other([pod('remote-b')])]],
    ['then the other Service drops it', [...victim([]), ...other([])]],
  ];
  for (const [what, objects] of steps) {
    await proxy.apply(objects);
    const fates = await Promise.all(all.map(({ connection }) => connection.fate(STAYS_MS)));
    for (const [index, { error }] of fates.entries()) t.equal(error, null, `${what}: ${all[index]?.title ?? ''}`);
    await goOn(t, all, what);
  }
  await areReset(t, own, Date.now(), 'the other Service called it a pod, and resets its own connections');
});

t.test('a pod that leaves two Services apart: connections through both are reset', async (t) => {
  const { lab, proxy } = await world(t, [pod('remote-b')]);
  await proxy.apply([...web([pod('remote-b')]), ...other([pod('remote-b')])]);
  const both = await Promise.all(
    [41, 42].flatMap((number) =>
      FAMILY_VIEWS.map((view) => connect(lab, 'pod-c', endpoint(view.clusterIP(number), 80))),
    ),
  );
  await silence(lab, 'remote-b');
  await proxy.apply([...web([]), ...other([pod('remote-b')])]);
  const fates = await Promise.all(both.map(({ connection }) => connection.fate(STAYS_MS)));
  for (const [index, { error }] of fates.entries()) t.equal(error, null, both[index]?.title ?? '');
  await proxy.apply([...web([]), ...other([])]);
  await areReset(t, both, Date.now(), 'gone from both');
});

t.test('drain: connections to a terminating endpoint end after the annotated time', async (t) => {
  const annotations = { 'pointsman.dev/drain': '3s' };
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  const all = await clients(lab, ['remote-a', 'remote-b'], WAYS.slice(0, 2));
  const leaving = all.filter((client) => client.pod === 'remote-b');
  const since = Date.now();
  const terminating: PodEndpoint = { ...pod('remote-b'), ready: false, serving: true, terminating: true };
  await proxy.write(web([pod('remote-a'), terminating], { annotations }));
  const fates = await Promise.all(leaving.map(({ connection }) => connection.fate(LEARNS_MS)));
  for (const { error, at } of fates) {
    t.equal(error, 'reset');
    t.ok(at - since >= 3000, `after ${Math.round(at - since)} ms`);
  }
  await goOn(
    t,
    all.filter((client) => client.pod === 'remote-a'),
    'the other pod',
  );
});

t.test('connections to an address are reset if another pod takes it over later, not at once', async (t) => {
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  const all = await clients(lab, ['remote-a', 'remote-b'], WAYS.slice(0, 2));
  await proxy.write(web([pod('remote-a')]));
  await proxy.synced();
  await proxy.apply(web([pod('remote-a'), pod('remote-b')]));
  const fates = await Promise.all(all.map(({ connection }) => connection.fate(STAYS_MS)));
  t.ok(
    fates.every(({ error }) => error === null),
    'no reset by the proxy: the new pod resets dead connections',
  );
  await goOn(t, all, 'it is the same pod here');
  // Taken over after it was gone for good: clients of the former pod are reset, those of the new one are not.
  await proxy.write(web([pod('remote-a')]));
  const former = all.filter((client) => client.pod === 'remote-b');
  await areReset(t, former, Date.now(), 'gone for good');
  await proxy.apply(web([pod('remote-a'), pod('remote-b')]));
  const later = await clients(lab, ['remote-b'], WAYS.slice(0, 1));
  const stay = await Promise.all(later.map(({ connection }) => connection.fate(STAYS_MS)));
  t.ok(stay.every(({ error }) => error === null));
  await goOn(t, later, 'the new pod');
});

t.test('a process killed between removal and resets: the next one resets', inFull, async (t) => {
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  const all = await clients(lab, ['remote-a', 'remote-b']);
  await silence(lab, 'remote-b');
  await proxy.write(web([pod('remote-a')]));
  await proxy.synced();
  await proxy.stop('SIGKILL');
  proxy.launch();
  await areReset(
    t,
    all.filter((client) => client.pod === 'remote-b'),
    Date.now(),
    'the next process',
  );
  await goOn(
    t,
    all.filter((client) => client.pod === 'remote-a'),
    'the other pod',
  );
  await proxy.ready();

  await silence(lab, 'remote-a');
  await proxy.stop('SIGKILL');
  await proxy.write(web([]));
  proxy.launch();
  await areReset(
    t,
    all.filter((client) => client.pod === 'remote-a'),
    Date.now(),
    'gone while no process ran',
  );
});

t.test('connections are reset with strict conntrack and reverse path filtering', inFull, async (t) => {
  const { lab, proxy } = await world(t, [pod('remote-a'), pod('remote-b')]);
  await lab.sysctl('node', 'net/netfilter/nf_conntrack_tcp_loose', '0');
  for (const key of ['all', 'default', 'eth0', 'veth-a', 'veth-b', 'cbr0', 'lo'])
    await lab.sysctl('node', `net/ipv4/conf/${key}/rp_filter`, '1');
  const all = await clients(lab, ['remote-a', 'remote-b']);
  await silence(lab, 'remote-b');
  for (const [index, { connection, pod }] of all.entries())
    if (pod === 'remote-b' && index % 2 === 1) await connection.send();
  await proxy.write(web([pod('remote-a')]));
  await areReset(
    t,
    all.filter((client) => client.pod === 'remote-b'),
    Date.now(),
    'its pod is gone',
  );
  await goOn(
    t,
    all.filter((client) => client.pod === 'remote-a'),
    'the other pod',
  );
});
