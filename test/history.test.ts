// Whatever happened to a node: two sync periods later its kernel is that of a node where the process starts for the first time.
// Without the removal of what nothing leads to, mode nftables fails with every seed that was tried (350000, 350001) in its first rounds.
// POINTSMAN_HISTORY_ROUNDS says how many rounds each mode gets, POINTSMAN_HISTORY_SEED with which history they begin, POINTSMAN_HISTORY_MODE which mode alone.
// POINTSMAN_KUBE_APISERVER names the folder of a kube-apiserver and an etcd, which take the place of the test API server.
import { readdirSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t, { type Test } from 'tap';
import { rememberAtMost } from './support/fake-kernel/compiler.js';
import { FakeCluster } from './support/history/cluster.js';
import { RealCluster } from './support/history/real-cluster.js';
import { play, type Failure } from './support/history/play.js';
import { shrink, someHistory, type Step } from './support/history/steps.js';
import { usually } from './support/extent.js';
import { SeededRandom } from './support/random.js';
import { parseStory, type Story } from './support/scenario-file.js';
import { LINUX_STORIES, SCENARIO_MODES } from './support/scenario-modes.js';
import type { ScenarioMode } from './support/scenario-world.js';

rememberAtMost(1000);

const SEED = Number(process.env['POINTSMAN_HISTORY_SEED'] ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env['POINTSMAN_HISTORY_ROUNDS'] ?? usually(4, 20));
const MODE = process.env['POINTSMAN_HISTORY_MODE'] ?? '';
const PROGRAMS = process.env['POINTSMAN_KUBE_APISERVER'] ?? '';
const ROUNDS_OF_HISTORY = 4;
const SHRINKING_TRIES = 150;
/** So many of the histories load what all need, and have V8 compile it. */
const WARM_UP = Math.max(1, ROUNDS / ROUNDS_OF_HISTORY / 5);
/** Of all that the test itself keeps meanwhile, such as compiled code. */
const HEAP_GROWTH = 8 * 1024 * 1024;

const usual = readFileSync('test/scenarios/usual-cluster', 'utf8');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heap(): number {
  for (let round = 0; round < 4; round++) collect();
  return process.memoryUsage().heapUsed;
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

const real = PROGRAMS === '' ? null : await RealCluster.start(PROGRAMS);
if (real !== null) t.teardown(() => real.stop());

async function happen(steps: readonly Step[], mode: ScenarioMode, story: Story): Promise<Failure | null> {
  const cluster = real ?? (await FakeCluster.start());
  try {
    return await play(steps, mode, story, cluster);
  } finally {
    await (real === null ? cluster.stop() : real.clear());
  }
}

async function reportLeast(
  t: Test,
  seed: number,
  steps: readonly Step[],
  failure: Failure,
  again: (steps: readonly Step[]) => Promise<Failure | null>,
): Promise<void> {
  const isLast = (index: number): boolean => index + 1 === failure.steps;
  const failed = steps.slice(0, failure.steps).filter(({ does }, index) => does !== 'compare' || isLast(index));
  const least = await shrink(failed, async (fewer) => (await again(fewer)) !== null, SHRINKING_TRIES);
  const { findings } = (await again(least)) ?? failure;
  for (const step of least) t.comment(JSON.stringify(step));
  for (const finding of findings.slice(0, 20)) t.comment(finding);
  t.fail(`POINTSMAN_HISTORY_SEED=${seed}: ${findings[0] ?? ''}`);
}

for (const mode of LINUX_STORIES.filter(({ definition }) => MODE === '' || definition.name === MODE)) {
  t.test(
    `${mode.definition.name}: after any history the kernel state equals that of a first start`,

    async (t) => {
      const story = await parseStory('usual-cluster', { text: '', usual }, mode, SCENARIO_MODES);
      const again = (steps: readonly Step[]): Promise<Failure | null> => happen(steps, mode, story);
      let before: { readonly heap: number; readonly descriptors: number } | null = null;
      for (let seed = SEED; seed < SEED + ROUNDS / ROUNDS_OF_HISTORY; seed++) {
        const steps = someHistory(new SeededRandom(seed), ROUNDS_OF_HISTORY);
        const failure = await again(steps);
        if (failure !== null) await reportLeast(t, seed, steps, failure, again);
        else t.pass(`seed ${seed}`);
        if (seed < SEED + WARM_UP) before = { heap: heap(), descriptors: descriptors() };
      }
      if (before === null) return;
      const [grown, opened] = [heap() - before.heap, descriptors() - before.descriptors];
      t.ok(grown < HEAP_GROWTH, `the heap grew by ${grown} bytes`);
      t.ok(opened <= 0, `${opened} more descriptors`);
    },
  );
}
