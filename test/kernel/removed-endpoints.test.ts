// Established connections to endpoints that are gone: docs/when-endpoints-die.md.
// needs: nft, conntrack
import type { Test } from 'tap';
import t from 'tap';
import { Lab, endpoint, eventually, patience, type TCPConnection } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import {
  dualStack,
  FAMILY_VIEWS,
  IPV4,
  type DualStackOptions,
  type FamilyView,
  type PodEndpoint,
} from '../support/lab/packet-table.js';
import { Proxy, type ProxyOptions } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

/** Client and the way it takes to the Service. */
const WAYS: readonly { readonly from: string; readonly to: (view: FamilyView) => string }[] = [
  { from: 'pod-c', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'node', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'client', to: (view) => endpoint(view.loadBalancerIP(3), 80) },
  { from: 'client', to: (view) => view.nodePort(30080) },
];
/** Without a reset an idle connection lasts for ever, and a busy one for minutes. */
const LEARNS_MS = patience(60_000);
/** Longer than an address has to be absent, a reset takes, and a client is asked again. */
const STAYS_MS = patience(4000);

type Pod = keyof typeof ADDRESSES;

const pod = (name: Pod): PodEndpoint => ({ pod: name, targetKind: 'Pod' });

function web(endpoints: readonly PodEndpoint[], options: Partial<DualStackOptions> = {}): Manifest[] {
  return dualStack('web', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    ports: [{ port: 80, nodePort: 30080 }],
    endpoints,
    ...options,
  });
}

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
async function clients(lab: Lab, pods: readonly Pod[], ways = WAYS): Promise<readonly Client[]> {
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

t.test('clients of a removed pod learn of it, idle and busy, and nobody else notices anything', async (t) => {
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
