// The histories of test/history.test.ts on a real kernel, with the program as it is shipped: after each round the kernel has what a first start leaves.
// POINTSMAN_HISTORY_ROUNDS says how many rounds there are, POINTSMAN_HISTORY_SEED with which history they begin.
// needs: conntrack, iptables
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { usually } from '../support/extent.js';
import { harm } from '../support/history/lab-harm.js';
import { NODE, ZONES } from '../support/history/objects.js';
import { someHistory, type Step } from '../support/history/steps.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { faulty, type KernelFaults } from '../support/lab/kernel-faults.js';
import { Lab } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { node, type Manifest } from '../support/lab/objects.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { SeededRandom } from '../support/random.js';

const SEED = Number(process.env['POINTSMAN_HISTORY_SEED'] ?? Date.now() % 1_000_000);
/** In User Mode Linux, which has mode ipvs, a round takes ten times as long. */
const ROUNDS = Math.ceil(
  Number(process.env['POINTSMAN_HISTORY_ROUNDS'] ?? usually(1, 4)) / (labMode() === 'ipvs-legacy' ? 10 : 1),
);
const FAULT_RATE = 0.02;
const LONGEST_WAIT_MS = 1500;
/** Two periods after the last step, and what a busy machine takes. */
const PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 300;
/** A start writes for about so long. */
const MS_OF_A_WRITE = 15;
/** Where the kernel tells nothing, a full comparison finds what others did. */
const CONFIG = { hostnameOverride: NODE, nftables: { syncPeriod: '5s' } };

/** A node in a laboratory, the objects that its API server has, and what happens to both. */
class LabHistory {
  private readonly objects = new Map<string, Manifest>();
  private server: 'answers' | 'down' | 'frozen' = 'answers';
  private readonly created = new Map<string, string>();

  constructor(
    private readonly lab: Lab,
    private readonly plane: ControlPlane,
    private readonly proxy: Proxy,
  ) {}

  get all(): readonly Manifest[] {
    return [...this.objects.values()];
  }

  async take(step: Step): Promise<void> {
    switch (step.does) {
      case 'put':
        this.put(step.object as Manifest);
        return;
      case 'delete':
        this.objects.delete(`${step.kind} ${step.name}`);
        return;
      case 'sync':
      case 'sync with faults':
        await this.sync();
        return;
      case 'kill the process':
        await this.kill(step.write, step.happened ? 'after' : 'before');
        return;
      case 'kill the server':
        if (this.server !== 'down') await this.plane.down();
        this.server = 'down';
        return;
      case 'freeze the server':
        if (this.server !== 'answers') return;
        await this.plane.watches('stall');
        await this.plane.fault({ fault: { type: 'hang' } });
        this.server = 'frozen';
        return;
      case 'compact the server':
        await this.plane.compact();
        if (this.server === 'answers') await this.plane.watches('end');
        return;
      case 'restore the server':
        await this.restore();
        return;
      case 'harm':
        await harm(this.lab, this.proxy.mode, new SeededRandom(step.seed));
        return;
      case 'wait':
        await pause(Math.min(step.ms, LONGEST_WAIT_MS));
        return;
      case 'compare':
        await this.restore();
        await this.sync();
        await this.proxy.consistent();
    }
  }

  private put(object: Manifest): void {
    const { name } = object['metadata'] as { readonly name: string };
    if (object.kind === 'Node') {
      this.proxy.replaceNode(ownNode(object));
      return;
    }
    const key = `${object.kind} ${name}`;
    const metadata = { ...(object['metadata'] as object), creationTimestamp: this.createdAt(key) };
    this.objects.set(key, { ...object, metadata });
  }

  /** No two objects are of one age. An API server keeps an object's, so one that comes back before the next sync has it still. */
  private createdAt(key: string): string {
    const second = 1_700_000_000 + this.created.size;
    const at = this.created.get(key) ?? new Date(second * 1000).toISOString().replace('.000', '');
    this.created.set(key, at);
    return at;
  }

  private async sync(): Promise<void> {
    await this.proxy.write(this.all);
    if (this.server === 'answers') await this.proxy.synced();
  }

  /** The process is killed at one of the writes of its start, where the laboratory can tell them apart; else after about that time. */
  private async kill(call: number, when: 'before' | 'after'): Promise<void> {
    const isCounted = this.proxy.mode === 'nftables';
    await this.proxy.stop('SIGKILL');
    await this.proxy.write(this.all);
    this.proxy.launch(faults(isCounted ? { kill: { call: call + 1, when } } : {}));
    if (isCounted && this.server === 'answers') await this.proxy.diesOrSettles();
    else await pause(MS_OF_A_WRITE * call);
    await this.proxy.stop('SIGKILL');
    this.proxy.launch();
  }

  private async restore(): Promise<void> {
    await this.plane.clearFaults();
    if (this.server === 'down') await this.plane.up();
    // In life a frozen server's machine ends, too. Otherwise the process gives up a watch after minutes.
    if (this.server === 'frozen') await this.plane.watches('reset');
    this.server = 'answers';
  }
}

function faults(more: KernelFaults): Readonly<Record<string, string>> {
  return faulty({ rate: FAULT_RATE, seed: SEED, ...more });
}

/** The laboratory's addresses with the labels of the history's Node. */
function ownNode(object: Manifest | null): Manifest {
  const own = node(NODE, { addresses: Object.values(ADDRESSES.node) });
  const { labels } = (object?.['metadata'] ?? { labels: { 'topology.kubernetes.io/zone': ZONES[0] } }) as {
    readonly labels?: Readonly<Record<string, string>>;
  };
  return { ...own, metadata: { ...(own['metadata'] as object), labels } };
}

/**
 * What the mode's own tools print, but for counters, for which slot or class a Service got, and for the laboratory's own Service. A class is kept by a
 * Service that shrinks, see `classSize`: which one it is depends on what became known together.
 */
async function rulesOf(proxy: Proxy): Promise<readonly string[]> {
  const lines = (await proxy.rules()).split('\n').map((line) =>
    line
      .replace(/\b(shard|endpoints)-\d+\b/g, '$1-N')
      .replace(/\b(pick|external(?:-local)?)-\d+(?:-\d+)?\b/g, '$1-N')
      .replace(/\bnumgen random mod \d+\b/g, 'numgen random mod N')
      .replace(/\[\d+:\d+\]|^# .*$|^\s*(?:elements = \{ )?|(?:,| \})?$/g, '')
      .replace(/\b0x[\da-f]{8} \. |^\d+ \. /, 'SLOT . ')
      .replace(/\b20\d\d\d\b/g, 'MARKER'),
  );
  // Where mode ipvs waits for connections to the laboratory's own endpoint to end.
  return [...new Set(lines)].filter((line) => !/:MARKER .* -w 0$/.test(line)).sort();
}

interface Difference {
  readonly missing: readonly string[];
  readonly surplus: readonly string[];
}

const NONE: Difference = { missing: [], surplus: [] };

function difference(held: readonly string[], fresh: readonly string[]): Difference {
  const only = (these: readonly string[], those: readonly string[]): readonly string[] =>
    these.filter((line) => !those.includes(line));
  return { missing: only(fresh, held), surplus: only(held, fresh) };
}

async function rulesOfFirstStart(t: Test, history: LabHistory, own: Manifest): Promise<readonly string[]> {
  let rules: readonly string[] = [];
  await t.test('a first start', async (t) => {
    const lab = await Lab.start(t);
    const proxy = await Proxy.start(t, lab, { objects: history.all, node: own, config: CONFIG });
    await proxy.consistent();
    rules = await rulesOf(proxy);
  });
  return rules;
}

t.test(`${labMode()}: after any history the real kernel has what a first start leaves`, async (t) => {
  t.comment(`POINTSMAN_HISTORY_SEED=${SEED}`);
  const lab = await Lab.start(t);
  const plane = await ControlPlane.start(t, lab);
  let own = ownNode(null);
  const proxy = await Proxy.start(t, lab, { node: own, cluster: plane, config: CONFIG, env: faults({}) });
  const history = new LabHistory(lab, plane, proxy);
  // In half of all histories nobody else does anything, and the process must not say so.
  const isAlone = SEED % 2 === 0;
  const steps = someHistory(new SeededRandom(SEED), ROUNDS).filter(({ does }) => !isAlone || does !== 'harm');
  for (const [index, step] of steps.entries()) {
    try {
      await history.take(step);
    } catch (error) {
      t.comment(JSON.stringify(step));
      throw new Error(`step ${index}: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (step.does === 'put' && step.object['kind'] === 'Node') own = ownNode(step.object as Manifest);
    if (step.does !== 'compare') continue;
    const fresh = await rulesOfFirstStart(t, history, own);
    // What was harmed last may not be repaired yet, and not all of that shows in the dump.
    const end = Date.now() + PATIENCE_MS;
    let found = difference(await rulesOf(proxy), fresh);
    while (!isDeepStrictEqual(found, NONE) && Date.now() < end) {
      await pause(LOOK_AGAIN_MS);
      found = difference(await rulesOf(proxy), fresh);
    }
    t.same(found, NONE, `step ${index}`);
    if (isAlone) t.notMatch(proxy.log, /external change repaired/, 'no change of its own passes for an external one');
  }
});
