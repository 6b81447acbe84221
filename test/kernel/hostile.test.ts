// What one who may write Services can do to a node: its health is answered, others' changes and connections go on, memory comes back, and what is left
// out is in the status, in the log, and reported by an event.
import t, { type Test } from 'tap';
import { usually } from '../support/extent.js';
import { heapBytes, measure, slownessOfCore, watchPages } from '../support/hostile/measures.js';
import { IS_EMULATED, OTHERS, ROWS, type Row } from '../support/hostile/rows.js';
import { rulesByChain, rulesWalked } from '../support/hostile/rules.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { eventually, Lab } from '../support/lab/lab.js';
import { answeringNames } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { MOST_WALKED } from '../support/rules-walked.js';

const SLOWNESS = (IS_EMULATED ? 5 : 1) * slownessOfCore();

/** What is promised, in milliseconds, on the machine of the documented times. */
const HEALTH_MS = 1000 * SLOWNESS;
const CHANGE_MS = 2000 * SLOWNESS;
const MOST_BYTES = 700_000_000;
/** A Service at the limits takes more than that; compiled code and tables that only grow take a few. */
const MOST_KEPT_BYTES = 10_000_000;

async function check(t: Test, { lab, plane, proxy }: World, row: Row): Promise<void> {
  const { objects, reported, event, asked = [], works } = row;
  const usual = await measure(lab, proxy, [OTHERS, OTHERS, OTHERS]);
  const lines = proxy.log.split('\n').length;
  const rules = await rulesByChain(lab);
  const walked = await rulesWalked(lab);
  const pages = watchPages(lab, (await proxy.status()).pid, asked);
  const attack = [...OTHERS, ...objects];
  const under = await measure(lab, proxy, [attack, attack, attack]);
  t.comment(`under: ${JSON.stringify(under)}`);
  // Large changes of others follow in syncs of their own.
  const isDone = async () => ((await proxy.status()).pendingMs === null ? true : null);
  t.ok(await eventually('no change waits', isDone, 240_000));
  const { families, memory } = await proxy.status();
  const texts = families.flatMap(({ conflicts, serviceLimitations }) => [...conflicts, ...serviceLimitations]);
  t.ok(
    reported === null ? texts.length === 0 : texts.some((text) => reported.test(text)),
    texts.join('; ').slice(0, 500),
  );
  t.ok(memory.residentBytes < MOST_BYTES, `${memory.residentBytes} bytes`);
  const attacked = await rulesByChain(lab);
  const more = [...rules].filter(([name, count]) => (attacked.get(name) ?? count) > 1.2 * count);
  t.same(more, [], 'a connection of another Service meets no more rules than before');
  for (const [chain, count] of await rulesWalked(lab)) {
    const before = walked.get(chain) ?? 0;
    t.ok(
      count <= Math.max(1.2 * before, MOST_WALKED),
      `a connection walks ${count} rules of ${chain}, ${before} before`,
    );
  }
  if (works !== undefined)
    t.same(await answeringNames(lab, { from: 'client', to: works.to }, 5), [works.answers], `${works.to} works`);
  const { longest, failed } = await pages();
  t.ok(longest <= HEALTH_MS, `pages: ${longest} ms`);
  t.same(failed, []);
  if (event !== null) {
    const [reason, name] = event;
    const isIt = (posted: { readonly reason: string; readonly regarding: { readonly name: string } }): boolean =>
      posted.reason === reason && posted.regarding.name === name;
    const find = async () => (await plane.state()).events.find(isIt) ?? null;
    t.ok(await eventually(`event ${reason} of ${name}`, find, 60_000));
  }
  const after = await measure(lab, proxy, [OTHERS, OTHERS]);
  t.ok(await eventually('nothing of it is left to do', isDone, 240_000));
  t.comment(JSON.stringify({ usual, under, after }));
  for (const [when, took] of Object.entries({ under, after })) {
    t.ok(took.health <= HEALTH_MS, `${when}: health ${took.health} ms, usually ${usual.health}`);
    t.ok(took.change <= CHANGE_MS, `${when}: a change ${took.change} ms, usually ${usual.change}`);
  }
  t.ok(proxy.log.split('\n').length - lines < 100, 'the log is not filled');
}

interface World {
  readonly lab: Lab;
  readonly plane: ControlPlane;
  readonly proxy: Proxy;
}

t.test('hostile Services are served within bounds', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  t.comment(`times of a machine that is ${SLOWNESS.toFixed(1)} times as fast count`);
  const plane = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { cluster: plane });
  await proxy.write([]);
  await proxy.restart();
  const before = await heapBytes(lab, proxy);
  for (const row of usually(
    ROWS.filter((row) => row.inFull !== true),
    ROWS,
  ))
    await t.test(row.name, (t) => check(t, { lab, plane, proxy }, row));
  const after = await heapBytes(lab, proxy);
  t.ok(after - before < MOST_KEPT_BYTES, `memory comes back: ${after} bytes of heap, ${before} before`);
});
