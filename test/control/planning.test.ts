// Plans that take long leave the event loop to others, and are whole when the kernel gets them.
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import type { FrontendKey } from '../../src/plan/types.js';
import type { Row } from '../../src/state/rows.js';
import { planSettings } from '../support/plan-settings.js';
import { service } from '../support/rows.js';
import { replaceMode, world } from './sync-cycle-world.js';

const COUNT = 40;
/** Milliseconds that planning of one Service takes by the clock of {@link slow}: ten Services are a slice. */
const EACH_MS = 5;

function numbered(count: number, port = 80): readonly Row[] {
  return Array.from({ length: count }, (_, number) =>
    service(`s${number}`, { clusterIPs: [`10.96.1.${number}`], ports: [{ port }] }),
  );
}

/** A world in which planning takes time, if nothing else does. */
function slow(): ReturnType<typeof world> {
  const made = world();
  const { clock } = made;
  const now = clock.now.bind(clock);
  let spent = 0;
  clock.now = () => now() + spent;
  const table = made.cycle.planner.tables.IPv4;
  const setService = table.setService.bind(table);
  table.setService = (...change) => {
    spent += EACH_MS;
    setService(...change);
  };
  return made;
}

/** Turns of the event loop that other work gets until the promise settles. */
async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  const state = { ended: false };
  const noteEnd = (): void => void (state.ended = true);
  promise.then(noteEnd, noteEnd);
  let budget = 0;
  for (; !state.ended; budget++) await turn();
  return budget;
}

/** Frontends by the changes that the dataplane was given. */
const sent = (calls: readonly string[]): readonly FrontendKey[] => calls.flatMap((call) => call.split(','));

t.test('a long plan yields to the event loop, and is sent whole', async (t) => {
  const made = slow();
  await made.cycle.run({ full: true });
  made.dataplanes.IPv4.calls.length = 0;
  made.upsert(...numbered(COUNT));
  const run = made.cycle.run({ full: false });
  t.same(made.dataplanes.IPv4.calls, [], 'nothing is sent yet');
  t.ok(made.cycle.planner.tables.IPv4.counts.services < COUNT, 'not all is planned in the first turn');
  t.ok((await turnsUntil(run)) >= (COUNT * EACH_MS) / 50 - 1);
  t.equal(made.dataplanes.IPv4.calls.length, 1, 'one sync');
  t.equal(sent(made.dataplanes.IPv4.calls).length, COUNT);
});

t.test('a plan of one Service is sent in the same turn of the event loop', async (t) => {
  const made = slow();
  await made.cycle.run({ full: true });
  made.dataplanes.IPv4.calls.length = 0;
  made.upsert(...numbered(1));
  const run = made.cycle.run({ full: false });
  t.same(made.dataplanes.IPv4.calls, ['10.96.1.0:80/TCP']);
  await run;
});

t.test('a change that arrives during a plan waits for the next one, and counts as pending', async (t) => {
  const made = slow();
  const { cycle, progress, dataplanes } = made;
  await cycle.run({ full: true });
  made.upsert(...numbered(COUNT));
  const begun = progress.plansBegun;
  const run = cycle.run({ full: false });
  t.same([progress.plansBegun, progress.plans], [begun + 1, begun], 'what is being planned is not planned');
  await turn();
  // Some of these are planned already, others are not.
  made.upsert(...numbered(COUNT, 81));
  t.equal(progress.pendingServices, COUNT);
  await run;
  t.same([progress.plansBegun, progress.plans], [begun + 1, begun + 1]);
  t.equal(progress.pendingServices, COUNT, 'they wait for a run');
  t.not(progress.waitingSince, null);
  dataplanes.IPv4.calls.length = 0;
  await cycle.run({ full: false });
  t.same([progress.pendingServices, progress.waitingSince], [0, null]);
  const ports = [...cycle.planner.tables.IPv4.frontends()].map(({ port }) => port);
  t.same(new Set(ports), new Set([81]));
  t.equal(ports.length, COUNT);
});

t.test('a plan is abandoned when settings change, and made anew with the new ones', async (t) => {
  const made = slow();
  const { cycle, dataplanes } = made;
  made.upsert(...numbered(COUNT));
  const run = cycle.run({ full: true });
  await turn();
  const settings = {
    ...planSettings({ masqueradeAll: true }),
    kubernetes: null,
    healthz: null,
    resetRemovedEndpoints: false,
  };
  const others = replaceMode(made);
  cycle.follow({ ...settings, metrics: { address: parseAddress('::1')!, port: 0 } });
  await run;
  t.same(dataplanes.IPv4.calls, [], 'the mode that went gets nothing');
  t.same(others.IPv4.calls, ['full']);
  const { node, counts } = cycle.planner.tables.IPv4;
  t.same([node.masqueradeAll, counts.services], [true, COUNT]);
  t.equal(cycle.guardedBy?.masqueradeAll ?? null, true);
});

t.test('a process that ends during a plan sends nothing more', async (t) => {
  const made = slow();
  made.upsert(...numbered(COUNT));
  const run = made.cycle.run({ full: true });
  await turn();
  made.cycle.stop();
  await run;
  t.same([...made.dataplanes.IPv4.calls, ...made.dataplanes.IPv6.calls], []);
});
