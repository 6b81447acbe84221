import t from 'tap';
import { MOST_GONE_EARLY, StaleFlows, type StaleFlowsParts } from '../../src/control/stale-flows.js';
import type { FamilyDataplane } from '../../src/dataplane/contract.js';
import { CycleObservers } from '../../src/observe/cycle-observer.js';
import { Planner } from '../../src/plan/planner.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import type { FrontendKey } from '../../src/plan/types.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { address } from '../support/rows.js';

t.test('removed frontends are remembered while rules of another mode are in the kernel', async (t) => {
  const passes: (readonly FrontendKey[])[] = [];
  const conntrack: NonNullable<StaleFlowsParts['conntrack']> = {
    reconcile: ({ changed }) => {
      passes.push([...changed]);
      return Promise.resolve({ flows: 0, deleted: 0, errors: [] });
    },
  };
  const flows = new StaleFlows({
    table: new Planner(planSettings()).tables.IPv4,
    conntrack,
    localAddresses: () => [],
    observers: new CycleObservers(),
    log: new RecordingLog(),
    clock: new FakeClock(),
    onDue: () => undefined,
  });
  const none = new Set<FrontendKey>();
  const dataplane = { goneFlows: () => none, clearGoneFlows: () => Promise.resolve() };
  const pass = async (): Promise<readonly FrontendKey[]> => {
    await flows.reconcile(dataplane as Partial<FamilyDataplane> as FamilyDataplane);
    return passes.pop() ?? [];
  };
  const keys = Array.from({ length: MOST_GONE_EARLY + 10 }, (_, index) =>
    frontendKey(address(`10.96.${index >> 8}.${index & 255}`), 53, 'UDP'),
  );
  flows.changed({ frontends: new Set(keys), attempts: none });
  t.equal((await pass()).length, keys.length, 'a first pass over all of them is pending');
  // One goes once more, the last of all.
  const [again] = keys;
  if (again === undefined) throw new Error('no keys');
  flows.changed({ frontends: new Set([again]), attempts: none });
  t.same(await pass(), [again]);
  flows.leftoversRemoved({ removed: true, finished: true, goneFlows: new Map() });
  const last = await pass();
  t.equal(last.length, MOST_GONE_EARLY);
  t.same(last.slice(-2), [keys.at(-1), again]);
  t.notOk(last.includes(keys[9] ?? again), 'the first ones are forgotten');
  t.end();
});
