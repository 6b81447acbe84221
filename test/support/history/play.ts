import { FAMILIES } from '../../../src/base/ip.js';
import { printTable } from '../../../src/plan/text.js';
import { SeededRandom } from '../random.js';
import { checkDump, checkEverywhere } from '../scenario-checks.js';
import type { Story } from '../scenario-file.js';
import type { ScenarioMode } from '../scenario-world.js';
import type { Cluster } from './cluster.js';
import { HistoryNode } from './node.js';
import type { Step } from './steps.js';

/** What was found wrong, and after how many steps. */
export interface Failure {
  readonly findings: readonly string[];
  readonly steps: number;
}

/** Lets a history happen; null: after each of its rounds the node was as one where the process starts for the first time. */
export async function play(
  steps: readonly Step[],
  mode: ScenarioMode,
  story: Story,
  cluster: Cluster,
): Promise<Failure | null> {
  for (const write of story.steps.flatMap(({ writes }) => writes))
    if (write.type === 'put') await cluster.put(write.object);
  const node = await HistoryNode.start(mode, story, cluster);
  try {
    let isHarmed = false;
    for (const [index, step] of steps.entries()) {
      isHarmed ||= step.does === 'harm';
      const differing = step.does === 'compare' ? await compare(node, mode, story, cluster) : [];
      const findings = isHarmed ? differing : [...differing, ...complaints(node)];
      if (findings.length > 0) return { findings, steps: index + 1 };
      await take(step, node, cluster);
    }
    return null;
  } finally {
    await node.end();
  }
}

async function take(step: Step, node: HistoryNode, cluster: Cluster): Promise<void> {
  switch (step.does) {
    case 'put':
      await cluster.put(step.object);
      return;
    case 'delete':
      await cluster.delete(step.kind, step.name);
      return;
    case 'sync':
      await follow(node, cluster);
      await node.sync();
      return;
    case 'sync with faults':
      await follow(node, cluster);
      await node.syncWithFaults(step.seed);
      return;
    case 'kill the process':
      await follow(node, cluster);
      await node.killProcess(step.write, step.happened);
      return;
    case 'kill the server':
      await cluster.kill();
      return;
    case 'freeze the server':
      await cluster.freeze();
      return;
    case 'compact the server':
      await cluster.compact();
      return;
    case 'restore the server':
      await cluster.restore();
      return;
    case 'harm':
      node.world.harm?.(new SeededRandom(step.seed));
      if (step.reported) await node.sync(true);
      return;
    case 'wait':
      await node.wait(step.ms);
      return;
    case 'compare':
      return;
  }
}

/** What the process says of others, who did nothing. A removal may have met a fault. */
function complaints({ process }: HistoryNode): readonly string[] {
  return process.log.lines.filter((line) => /^warn external change/.test(line));
}

async function follow(node: HistoryNode, cluster: Cluster): Promise<void> {
  if (cluster.answers) await node.follow(await cluster.mark());
}

/** How the node differs, two sync periods later, from one where the process starts for the first time. */
async function compare(
  node: HistoryNode,
  mode: ScenarioMode,
  story: Story,
  cluster: Cluster,
): Promise<readonly string[]> {
  await cluster.restore();
  await follow(node, cluster);
  try {
    await node.twoPeriods();
  } catch (error) {
    return [`two sync periods: ${String(error)}`];
  }
  const fresh = await HistoryNode.start(mode, story, cluster);
  try {
    await follow(fresh, cluster);
    await fresh.sync();
    const plans = [node, fresh].map(({ process }) => FAMILIES.flatMap((family) => printTable(process.table(family))));
    const contents = [node, fresh].map(({ world }) => world.contents());
    return [
      ...difference('plan', plans),
      ...(await checkDump(node.process)),
      ...checkEverywhere(node.world, node.process, story),
      ...node.world.leftovers().map((name) => `nothing leads to ${name}`),
      ...difference('kernel', contents),
    ];
  } finally {
    await fresh.end();
  }
}

function difference(what: string, [held = [], fresh = []]: readonly (readonly string[])[]): readonly string[] {
  const [all, wanted] = [new Set(held), new Set(fresh)];
  return [
    ...fresh.filter((line) => !all.has(line)).map((line) => `${what}, only after a first start: ${line}`),
    ...held.filter((line) => !wanted.has(line)).map((line) => `${what}, only after this history: ${line}`),
  ];
}
