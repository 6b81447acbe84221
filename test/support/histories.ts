import type { Test } from 'tap';
import type { FamilyDataplane } from '../../src/dataplane/contract.js';
import type { Row, ServiceRow } from '../../src/state/rows.js';
import type { FamilyRig } from './family-rig.js';
import type { SeededRandom } from './random.js';
import type { ScenarioWorld } from './scenario-world.js';

type HistoryRig = FamilyRig<Pick<ScenarioWorld, 'failAtRandom' | 'failNoMore'>, FamilyDataplane> & { now: number };

export interface History<Rig extends HistoryRig> {
  readonly rig: Rig;
  readonly nodeRows: readonly Row[];
  readonly service: (name: string, index: number) => ServiceRow;
  readonly endpoints: (name: string, index: number, service: ServiceRow) => Row;
  /** Of the kernel's own, before each sync. */
  readonly stir?: () => void;
  /** Done by others, before some syncs. */
  readonly damage: () => void;
  /** Before the last syncs. */
  readonly calm?: () => void;
  /** On a kernel of its own. */
  readonly fresh: Rig;
  /** What of the kernel is to be the same in the end. */
  readonly contents: (rig: Rig) => readonly string[];
}

const SERVICES = 5;
const STEPS = 12;
const ROUNDS = 3;
const DAY_MS = 24 * 3_600_000;

/**
 * Services come, change and go, processes start anew, others do damage and calls fail: whatever happened on the way, the end is that of a process that knows the
 * last state alone.
 */
export async function goThrough<Rig extends HistoryRig>(
  t: Test,
  random: SeededRandom,
  history: History<Rig>,
): Promise<void> {
  const { rig, nodeRows, calm, fresh, contents } = history;
  const rows = new Map<string, readonly Row[]>();
  rig.commit(nodeRows);
  await rig.sync();
  for (let step = 0; step < STEPS; step++) await takeStep(random, history, rows);
  calm?.();
  for (let round = 0; round < ROUNDS; round++) {
    await rig.sync(true);
    rig.now += DAY_MS;
  }
  fresh.commit([...nodeRows, ...[...rows.values()].flat()]);
  await fresh.sync();
  t.same(contents(rig), contents(fresh));
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.audit(), false);
}

async function takeStep<Rig extends HistoryRig>(
  random: SeededRandom,
  { rig, service, endpoints, stir, damage }: History<Rig>,
  rows: Map<string, readonly Row[]>,
): Promise<void> {
  const index = random.below(SERVICES);
  const name = `web-${index}`;
  if (random.chance(0.25)) {
    rows.delete(name);
    rig.commit([], [{ kind: 'Service', namespace: 'default', name }]);
  } else {
    const made = service(name, index);
    const both = [made, endpoints(name, index, made)];
    rows.set(name, both);
    rig.commit(both);
  }
  stir?.();
  if (random.chance(0.2)) rig.restart();
  if (random.chance(0.2)) damage();
  rig.kernel.failAtRandom(random);
  await rig.sync(random.chance(0.1)).catch(() => undefined);
  await rig.dataplane.probe().catch(() => undefined);
  rig.kernel.failNoMore();
  rig.now += random.pick([1, 1000, 60_000]);
}
