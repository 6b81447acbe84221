// SIGKILL at every transaction: the next start ends with exactly what is planned, and Services that nothing happens to never notice.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { usually } from '../support/extent.js';
import { endpoint, Lab, type Traffic, type Watch } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS } from '../support/lab/packet-table.js';
import { PEER_OBJECTS, PEER_PODS, peerStart } from '../support/lab/peer-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { Proxy } from '../support/lab/proxy.js';

/** There in every state of every story, and never changed. */
const STEADY: readonly Traffic[] = FAMILY_VIEWS.flatMap((view): Traffic[] => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), timeoutMs: 3000 },
  { from: 'client', to: view.nodePort(30001), timeoutMs: 3000 },
]);

const BEFORE: readonly Manifest[] = [
  ...PEER_OBJECTS,
  ...dualStack('changing', {
    number: 51,
    affinitySeconds: 600,
    ports: [
      { name: 'tcp', port: 80 },
      { name: 'udp', protocol: 'UDP', port: 53 },
    ],
    endpoints: ['pod-a', 'remote-a'],
  }),
  ...dualStack('going', { number: 52, ports: [{ protocol: 'UDP', port: 53 }], endpoints: ['pod-a'] }),
];
const AFTER: readonly Manifest[] = [
  ...PEER_OBJECTS,
  ...dualStack('changing', { number: 51, ports: [{ name: 'tcp', port: 81, targetPort: 80 }], endpoints: ['pod-a'] }),
  ...dualStack('coming', { number: 53, ports: [{ port: 80 }], endpoints: ['remote-a'] }),
];

interface Story {
  readonly title: string;
  /** Brings the kernel into the state in which the process starts that will be killed. */
  readonly prepare: (lab: Lab, proxy: Proxy) => Promise<void>;
  /** Whether the process is killed after its start, when the objects change. */
  readonly running: boolean;
  /** Transactions that there are at least: two families, and what each story has besides. */
  readonly transactions: number;
  /** Whether the steady Services have rules from the beginning. */
  readonly steady: boolean;
}

async function runUntilReady(proxy: Proxy, objects: readonly Manifest[]): Promise<void> {
  await proxy.write(objects);
  proxy.launch({});
  await proxy.ready();
  await proxy.stop('SIGKILL');
}

const STORIES: readonly Story[] = [
  {
    title: 'a start on an empty kernel',
    prepare: async (lab) => {
      await lab.output('node', ['nft', 'flush', 'ruleset']);
    },
    running: false,
    transactions: 2,
    steady: false,
  },
  {
    title: 'a start on the table of an earlier run',
    prepare: async (_lab, proxy) => {
      await runUntilReady(proxy, BEFORE);
    },
    running: false,
    // Each family changes what differs, empties what nobody needs any more, deletes it, and forgets flows.
    transactions: 8,
    steady: true,
  },
  {
    title: "a start on the peer's table",
    prepare: async (lab) => {
      const scripts = FAMILY_VIEWS.map(peerStart).join('\n');
      await lab.output('node', ['nft', '-f', '-'], `flush ruleset\n${scripts}`);
    },
    running: false,
    transactions: 6,
    steady: true,
  },
  {
    title: 'a change',
    prepare: async (_lab, proxy) => {
      await proxy.write(BEFORE);
    },
    running: true,
    transactions: 4,
    steady: true,
  },
];

for (const { title, prepare, running, transactions, steady } of usually(STORIES.slice(-1), STORIES)) {
  t.test(`a process killed during ${title} is completed by the next one`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PEER_PODS, [
      [80, 'TCP'],
      [53, 'UDP'],
    ]);
    const proxy = await Proxy.prepare(t, lab);
    const condition = join(t.testdir(), 'now');
    if (!running) await writeFile(condition, '');
    const watch = (): Promise<readonly Watch[]> =>
      Promise.all(steady ? STEADY.map((traffic) => lab.watch(traffic, 1, 2)) : []);
    let killed = 0;
    const most = usually(2, Infinity);
    for (let call = 1; killed === call - 1 && killed < most; call++) {
      const when = call % 2 === 0 ? 'after' : 'during';
      await prepare(lab, proxy);
      if (!running) await proxy.write(AFTER);
      const before = running ? [] : await watch();
      proxy.launch(faulty({ kill: { call, when }, while: `${condition}${running ? call : ''}` }));
      if (running) await proxy.ready();
      const watches = running ? await watch() : before;
      if (running) {
        await writeFile(`${condition}${call}`, '');
        await proxy.write(AFTER);
      }
      if (await proxy.diesOrSettles()) killed++;
      await proxy.stop('SIGKILL');
      proxy.launch({});
      await proxy.ready();
      await proxy.consistent();
      const outcomes = (await Promise.all(watches.map((each) => each.stop()))).flat();
      const failed = outcomes.filter((outcome) => 'error' in outcome);
      t.same(failed, [], `${when} transaction ${call}: no request to the others is lost`);
      await proxy.stop('SIGKILL');
    }
    t.ok(killed >= Math.min(most, transactions), `killed ${killed} times`);
    proxy.launch({});
    await proxy.ready();
    await checkRows(
      t,
      lab,
      FAMILY_VIEWS.flatMap((view) => [
        { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PEER_PODS, 80) },
        { from: 'pod-b', to: endpoint(view.clusterIP(51), 81), expect: view.kept(['pod-a'], 80) },
        { from: 'pod-b', to: endpoint(view.clusterIP(51), 80), expect: 'refused' },
        { from: 'pod-b', to: endpoint(view.clusterIP(53), 80), expect: view.kept(['remote-a'], 80) },
      ]),
    );
  });
}
