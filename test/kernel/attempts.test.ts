// What the kernel counts of connection attempts to endpoints: docs/telemetry.md.
// needs: nft, conntrack
import t from 'tap';
import { usually } from '../support/extent.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import { labMode, MODE_VARIABLE, type LabMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { parseExposition } from '../support/exposition.js';
import { silence } from './silence.js';

const MODES: readonly LabMode[] =
  process.env[MODE_VARIABLE] === undefined ? usually(['nftables'], ['nftables', 'iptables-nft']) : [labMode()];
const ENDPOINTS = ['remote-a', 'remote-b', 'pod-a', 'pod-b'] as const;
/** It has no server. */
const REFUSING = 'pod-b';
const WEB = dualStack('web', {
  type: 'NodePort',
  number: 41,
  ports: [{ port: 80, nodePort: 30080 }],
  endpoints: [...ENDPOINTS],
});
const WAYS: readonly { readonly from: string; readonly to: (view: FamilyView) => string }[] = [
  { from: 'pod-c', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'node', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'client', to: (view) => view.nodePort(30080) },
];
const TABLE = 'pointsman-attempts';

type Counts = Readonly<Record<'attempts' | 'answers' | 'refusals', number>>;

/** By endpoint. */
async function counted(lab: Lab): Promise<ReadonlyMap<string, Counts>> {
  const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  if (!('body' in answer)) throw new Error('no metrics');
  const counts = new Map<string, Counts>();
  for (const { name, samples } of parseExposition(answer.body).values()) {
    const [, what] = /^pointsman_endpoint_connect_(attempts|answers|refusals)/.exec(name) ?? [];
    if (what === undefined) continue;
    for (const { labels, value } of samples) {
      const of = labels['endpoint'] ?? '';
      // A port that only this test's Service has.
      if (!of.endsWith(':80')) continue;
      counts.set(of, { ...(counts.get(of) ?? { attempts: 0, answers: 0, refusals: 0 }), [what]: value });
    }
  }
  return counts;
}

function hasTable(lab: Lab): Promise<boolean> {
  return lab.output('node', ['nft', 'list', 'tables']).then((tables) => tables.includes(TABLE));
}

/** By pod and family what clients saw of attempts that each went to one endpoint. */
async function attempt(
  lab: Lab,
  each: number,
): Promise<{ readonly answered: Map<string, number>; readonly refused: number }> {
  const answered = new Map<string, number>();
  let refused = 0;
  for (const view of FAMILY_VIEWS)
    for (const { from, to } of WAYS)
      for (const outcome of await lab.burst({ from, to: to(view) }, each)) {
        if ('name' in outcome) {
          const key = `${outcome.name} ${view.family}`;
          answered.set(key, (answered.get(key) ?? 0) + outcome.count);
        } else refused += outcome.count;
      }
  return { answered, refused };
}

for (const mode of MODES) {
  t.test(`${mode}: attempts, answers and refusals are those that clients saw`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(
      ENDPOINTS.filter((name) => name !== REFUSING),
      [[80, 'TCP']],
    );
    const proxy = await Proxy.start(t, lab, { mode, flags: ['--service-telemetry'], objects: WEB });
    const { answered, refused } = await attempt(lab, 20);
    t.ok(refused > 0 && answered.size === 6, `${refused} refused, ${answered.size} answered`);
    const counts = await eventually('all attempts are counted', async () => {
      const counts = await counted(lab);
      const sum = [...counts.values()].reduce((total, { answers, refusals }) => total + answers + refusals, 0);
      return sum >= 20 * WAYS.length * FAMILY_VIEWS.length ? counts : null;
    });
    let refusals = 0;
    for (const { family } of FAMILY_VIEWS)
      for (const name of ENDPOINTS) {
        const found = counts.get(endpoint(ADDRESSES[name][family], 80)) ?? { attempts: 0, answers: 0, refusals: 0 };
        const wanted = answered.get(`${name} ${family}`) ?? 0;
        t.equal(found.answers, wanted, `${name} ${family}: answers`);
        t.equal(found.attempts, found.answers + found.refusals, `${name} ${family}: attempts`);
        if (name !== REFUSING) t.equal(found.refusals, 0);
        refusals += found.refusals;
      }
    t.equal(refusals, refused);
    await proxy.stop();
    t.notOk(await hasTable(lab), 'nothing is left when the process has ended');
  });

  t.test(`${mode}: explain and status name an endpoint that does not answer`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll([...ENDPOINTS], [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, { mode, objects: WEB });
    t.notOk(await hasTable(lab), 'nothing counts before a question');
    for (const view of FAMILY_VIEWS) {
      const to = endpoint(view.clusterIP(41), 80);
      const silent = endpoint(ADDRESSES['remote-b'][view.family], 80);
      t.match(
        (await proxy.explain(ADDRESSES['pod-c'][view.family], to)).attempts,
        { problem: null },
        'it begins to count',
      );
      t.ok(await hasTable(lab));
      await silence(lab, 'remote-b').catch(() => undefined);
      const named = await eventually(
        `${silent} is named`,
        async () => {
          const asked = Array.from({ length: 20 }, () => lab.request({ from: 'pod-c', to, timeoutMs: 500 }));
          await Promise.all(asked);
          const { observations } = await proxy.explain(ADDRESSES['pod-c'][view.family], to);
          const found = observations.filter(({ kind }) => kind === 'endpoint');
          return found.length === 0 ? null : found;
        },
        patience(30_000),
      );
      t.equal(named.length, 1, JSON.stringify(named));
      t.match(named[0]?.text, `endpoint ${silent} answered none of its last `);
      const { observations } = await proxy.status();
      t.ok(
        observations.some(({ text }) => text.startsWith(`endpoint ${silent} of default/web`)),
        JSON.stringify(observations),
      );
    }
    // A table that an external change removed is there again; nobody else is named meanwhile.
    await lab.output('node', ['nft', 'delete', 'table', 'ip', TABLE]);
    await eventually('it counts again', async () => {
      await proxy.explain(ADDRESSES['pod-c'].IPv4, endpoint(FAMILY_VIEWS[0]?.clusterIP(41) ?? '', 80));
      return (await hasTable(lab)) || null;
    });
    await proxy.stop('SIGKILL');
    t.ok(await hasTable(lab), 'what is killed leaves it');
    proxy.launch();
    await eventually('the next process removes it', async () => !(await hasTable(lab)) || null);
  });
}
