// Attempts to connect to endpoints that do not answer, while these go: behaviour CT-05 and docs/differences.md.
// needs: nft, conntrack
import t from 'tap';
import { endpoint, eventually, Lab, patience, type Connection } from '../support/lab/lab.js';
import { FAMILY_VIEWS, type PodEndpoint } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { revive, silence } from './silence.js';
import { WAYS, web } from './ways.js';

/** Attempts by each way. That none of a family's goes to one of two endpoints happens once in a million runs. */
const ATTEMPTS = 5;
/** A client gives up after this time, which is longer than the kernel takes to repeat its first packet several times. */
const GIVES_UP_MS = patience(60_000);

/** Whether an attempt waits for an answer of the pod in the family. */
async function isWaiting(lab: Lab, pod: keyof typeof ADDRESSES, family: 'IPv4' | 'IPv6'): Promise<boolean> {
  const flows = await lab.flows(family);
  return flows.some((line) => line.includes('SYN_SENT') && line.includes(`src=${ADDRESSES[pod][family]} `));
}

/** Attempts by every way, some of which are waiting for the pod when this resolves. `connected` says how many of them connected in the end. */
async function attempts(
  lab: Lab,
  pod: keyof typeof ADDRESSES,
): Promise<{ readonly all: number; readonly connected: Promise<number> }> {
  const opened = FAMILY_VIEWS.flatMap((view) =>
    WAYS.flatMap(({ from, to }) =>
      Array.from({ length: ATTEMPTS }, () => lab.open({ from, to: to(view), timeoutMs: GIVES_UP_MS })),
    ),
  );
  const connected = Promise.allSettled(opened).then(async (results) => {
    const connections = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    await Promise.all(connections.map((connection) => connection.close()));
    return connections.length;
  });
  for (const { family } of FAMILY_VIEWS)
    await eventually(`attempts wait in ${family}`, async () => (await isWaiting(lab, pod, family)) || null);
  return { all: opened.length, connected };
}

/** A connection to the pod by each family. */
async function established(lab: Lab, pod: string): Promise<readonly Connection[]> {
  return await Promise.all(
    FAMILY_VIEWS.map((view) =>
      eventually(`a connection to ${pod}`, async () => {
        const connection = await lab.open({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });
        const answer = await connection.exchange();
        if ('name' in answer && answer.name === pod) return connection;
        await connection.close();
        return null;
      }),
    ),
  );
}

const LEAVING: readonly { readonly how: string; readonly endpoint: PodEndpoint | null }[] = [
  { how: 'is removed', endpoint: null },
  { how: 'is not ready', endpoint: { pod: 'remote-b', ready: false, serving: false } },
  {
    how: 'is terminating while others serve',
    endpoint: { pod: 'remote-b', ready: false, serving: true, terminating: true },
  },
];

t.test('attempts to a silent endpoint move to another when it gets no new connections', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-b', 'remote-a'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: web(['remote-b', 'remote-a']) });
  const lasting = await established(lab, 'remote-b');
  for (const { how, endpoint } of LEAVING) {
    await silence(lab, 'remote-b');
    const { all, connected } = await attempts(lab, 'remote-b');
    await proxy.apply(web(endpoint === null ? ['remote-a'] : [endpoint, 'remote-a']));
    t.equal(await connected, all, `its endpoint ${how}`);
    await revive(lab, 'remote-b');
    const answers = await Promise.all(lasting.map((connection) => connection.exchange()));
    for (const answer of answers) t.match(answer, { name: 'remote-b' }, `established connections go on: ${how}`);
    await proxy.apply(web(['remote-b', 'remote-a']));
  }

  await silence(lab, 'remote-b');
  const { all, connected } = await attempts(lab, 'remote-b');
  await proxy.stop('SIGKILL');
  await proxy.write(web(['remote-a']));
  proxy.launch();
  await proxy.ready();
  t.equal(await connected, all, 'its endpoint is removed while no process runs');
  for (const connection of lasting) await connection.close();
});

t.test('attempts to the last, silent endpoint are refused when it is removed', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-b'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: web(['remote-b']) });
  await silence(lab, 'remote-b');
  const asked = FAMILY_VIEWS.map((view) =>
    lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80), timeoutMs: GIVES_UP_MS }),
  );
  for (const { family } of FAMILY_VIEWS)
    await eventually(`attempts wait in ${family}`, async () => (await isWaiting(lab, 'remote-b', family)) || null);
  await proxy.apply(web([]));
  for (const answer of await Promise.all(asked)) t.match(answer, { error: 'refused' });
});
