import { FAMILIES } from '../../src/base/ip.js';
import type { Row } from '../../src/state/rows.js';
import { refOf } from '../../src/state/rows.js';
import type { Store } from '../../src/state/store.js';
import type { StateChange } from '../../src/state/writer.js';
import { printFlow } from './fake-kernel/flows.js';
import { SeededRandom } from './random.js';
import {
  checkDump,
  checkEverywhere,
  checkInspections,
  checkPackets,
  checkPlan,
  checkRemembered,
  type Findings,
} from './scenario-checks.js';
import type { Step, Story } from './scenario-file.js';
import { ScenarioProcess } from './scenario-process.js';
import { StorySource } from './scenario-source.js';
import type { ScenarioMode, ScenarioWorld } from './scenario-world.js';

/** Tries after which 10 % faults cannot be to blame any more. */
const ATTEMPTS = 200;

/** A kernel with a process at work on it. */
class Run {
  readonly findings: Findings = [];
  /** What the sources say by now, for a process that starts anew. */
  private readonly objects = new Map<string, Row>();
  /** The kernel remembers a client: it goes where it went, which is not all that the plan allows. */
  private remembers = false;

  private constructor(
    private readonly mode: ScenarioMode,
    private readonly story: Story,
    readonly world: ScenarioWorld,
    private process: ScenarioProcess,
  ) {}

  static async start(mode: ScenarioMode, story: Story): Promise<Run> {
    const world = mode.world(story.localAddresses);
    return new Run(mode, story, world, await ScenarioProcess.start(mode, world, story));
  }

  /** Where another source than the story may write. */
  get store(): Store {
    return this.process.store;
  }

  commit(changes: readonly StateChange[]): void {
    this.note(changes);
    this.process.apply(changes);
  }

  /** What the sources say by now, whoever tells the process. */
  note(changes: readonly StateChange[]): void {
    this.world.follow?.(changes, this.story.settings.nodeName);
    for (const change of changes) {
      const { kind, namespace, name } = change.type === 'upsert' ? refOf(change.row) : change.ref;
      const key = `${kind}/${namespace}/${name}`;
      if (change.type === 'upsert') this.objects.set(key, change.row);
      else this.objects.delete(key);
    }
  }

  async sync(full = false): Promise<void> {
    await this.process.sync(full);
  }

  async syncUntilDone(): Promise<void> {
    await this.process.syncUntilDone(ATTEMPTS);
  }

  /** The process dies; another starts on the same kernel and reads every object again. */
  async restart(): Promise<void> {
    this.process = await ScenarioProcess.start(this.mode, this.world, this.story);
    this.process.apply([...this.objects.values()].map((row) => ({ type: 'upsert', row })));
  }

  act(step: Step): void {
    for (const flow of step.flows) this.world.flows?.add(flow);
    for (const { packet, verdict } of step.connections) {
      this.world.connect(packet, this.story.localAddresses, verdict);
      this.remembers = true;
    }
  }

  /** What plan and kernel say to each other; with a step also what the story says, and where every packet goes. */
  async check(where: string, step: Step | null): Promise<void> {
    const { world, process, story } = this;
    // What was programmed, if anything, is not what the plan says by now.
    if (process.held !== null) return;
    const found = [...(await checkDump(process))];
    if (step !== null && !this.remembers) found.push(...checkEverywhere(world, process, story));
    if (step !== null)
      found.push(...checkPlan(process, step.plan), ...checkPackets(world, process, story, step.packets));
    if (step !== null) found.push(...(await checkInspections(process, step.packets)));
    this.findings.push(...found.map((finding) => `${where}: ${finding}`));
  }

  /** Removals that were refused without a name are left to the next comparison of everything. */
  async removeUnneeded(): Promise<void> {
    if (this.process.held !== null) return;
    const found = await checkDump(this.process);
    if (found.some((line) => line.endsWith(' is needed by nothing'))) await this.process.period(0);
  }

  /** @param flows whether conntrack holds what the story says. */
  async checkStory(where: string, step: Step, flows = true): Promise<void> {
    const found = await checkRemembered(this.mode, this.world, this.process, this.story, step.remembered);
    if (flows && this.world.flows !== null && step.flowsLeft !== null) {
      const left = [...this.world.flows].map(printFlow).sort();
      if (left.join('\n') !== step.flowsLeft.join('\n')) found.push(`flows left: ${left.join(', ')}`);
    }
    this.findings.push(...found.map((finding) => `${where}: ${finding}`));
  }

  checkOperations(where: string, { operations }: Step): void {
    if (operations === null) return;
    const lines = FAMILIES.map((family) => {
      const report = this.process.report(family);
      if (report === null) return `${family} failed`;
      const { transactions, elementOperations, ruleOperations } = report;
      return `${family} ${transactions} transactions ${elementOperations} elements ${ruleOperations} rules`;
    });
    for (const line of operations)
      if (!lines.some((did) => did.startsWith(line)))
        this.findings.push(`${where}: expected ${line}, did ${lines.join('; ')}`);
  }

  /** Nothing to do: no transaction. */
  async checkIdle(where: string): Promise<void> {
    const before = this.world.transactions;
    await this.process.syncAtOnce();
    const sent = this.world.transactions - before;
    if (sent > 0) this.findings.push(`${where}: ${sent} transactions although nothing changed`);
  }

  /** At the end of any history: the same table as if there had been no history. */
  async finish(): Promise<Findings> {
    const { world, story, mode } = this;
    await this.process.sync(true);
    await this.check('at the end', story.steps[story.steps.length - 1] ?? null);
    const fresh = await Run.start(mode, story);
    fresh.commit([...this.objects.values()].map((row) => ({ type: 'upsert', row })));
    await fresh.sync();
    const [held, wanted] = [world.contents(), fresh.world.contents()];
    const found = [
      ...world.leftovers().map((name) => `nothing uses ${name}`),
      ...wanted.filter((line) => !held.includes(line)).map((line) => `a fresh kernel has ${line}`),
      ...held.filter((line) => !wanted.includes(line)).map((line) => `a fresh kernel has not ${line}`),
    ];
    this.findings.push(...found.map((finding) => `at the end: ${finding}`));
    return this.findings;
  }
}

export interface Variant {
  readonly name: string;
  readonly run: (story: Story, mode: ScenarioMode) => Promise<Findings>;
}

async function asWritten(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  for (const [index, step] of story.steps.entries()) {
    const where = `step ${index + 1}`;
    run.act(step);
    run.commit(step.changes);
    await run.sync();
    run.checkOperations(where, step);
    await run.check(where, step);
    await run.checkStory(where, step);
  }
  return run.finish();
}

/** Every object on its way through an API server, its encoding and the watches. */
async function throughApiServer(story: Story, mode: ScenarioMode, contentType: string): Promise<Findings> {
  const run = await Run.start(mode, story);
  const source = await StorySource.start(story, run.store, contentType);
  try {
    for (const [index, step] of story.steps.entries()) {
      const where = `step ${index + 1}`;
      run.act(step);
      run.note(step.changes);
      await source.write(step.writes);
      await run.sync();
      run.checkOperations(where, step);
      await run.check(where, step);
      await run.checkStory(where, step);
    }
    return await run.finish();
  } finally {
    await source.stop();
  }
}

async function withEmptySteps(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  for (const [index, step] of story.steps.entries()) {
    run.act(step);
    run.commit(step.changes);
    await run.sync();
    await run.checkIdle(`after step ${index + 1}`);
    await run.checkStory(`after step ${index + 1}`, step);
  }
  return run.finish();
}

async function split(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  for (const [index, change] of story.steps.flatMap(({ changes }) => changes).entries()) {
    run.commit([change]);
    await run.sync();
    await run.check(`change ${index + 1}`, null);
  }
  return run.finish();
}

async function squashed(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  run.commit(story.steps.flatMap(({ changes }) => changes));
  await run.sync();
  return run.finish();
}

/** The objects in the reverse order of their first appearance, each with its own history. */
async function reversed(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  const histories = new Map<string, StateChange[]>();
  for (const change of story.steps.flatMap(({ changes }) => changes)) {
    const { kind, namespace, name } = change.type === 'upsert' ? refOf(change.row) : change.ref;
    const key = `${kind}/${namespace}/${name}`;
    histories.set(key, [...(histories.get(key) ?? []), change]);
  }
  for (const history of [...histories.values()].reverse()) {
    for (const change of history) {
      run.commit([change]);
      await run.sync();
      await run.check(`${change.type} in reverse`, null);
    }
  }
  return run.finish();
}

/** The objects of every step go again, one by one in reverse, until nothing is left; then the story is told once more. */
async function thereAndBack(story: Story, mode: ScenarioMode): Promise<Findings> {
  const run = await Run.start(mode, story);
  const all = story.steps.flatMap(({ changes }) => changes);
  run.commit(all);
  await run.sync();
  for (const change of [...all].reverse()) {
    run.commit([{ type: 'remove', ref: change.type === 'upsert' ? refOf(change.row) : change.ref }]);
    await run.sync();
    await run.check('on the way back', null);
  }
  for (const { changes } of story.steps) {
    run.commit(changes);
    await run.sync();
  }
  return run.finish();
}

async function withFaults(story: Story, mode: ScenarioMode, seed: number): Promise<Findings> {
  const run = await Run.start(mode, story);
  run.world.failAtRandom(new SeededRandom(seed));
  for (const [index, step] of story.steps.entries()) {
    run.act(step);
    run.commit(step.changes);
    await run.syncUntilDone();
    run.world.failNoMore();
    await run.removeUnneeded();
    await run.check(`step ${index + 1}`, step);
    await run.checkStory(`step ${index + 1}`, step);
    run.world.failAtRandom(new SeededRandom(seed + index + 1));
  }
  run.world.failNoMore();
  return run.finish();
}

/** Another process takes over after one of the steps, cleanly or after a transaction whose answer nobody waited for. */
async function withCrash(story: Story, mode: ScenarioMode, after: number, unseen: boolean): Promise<Findings> {
  const run = await Run.start(mode, story);
  for (const [index, step] of story.steps.entries()) {
    run.act(step);
    run.commit(step.changes);
    const crashes = index === after;
    if (crashes && unseen) {
      run.world.loseAnswers(FAMILIES.length);
      await run.sync().catch(() => undefined);
      run.world.failNoMore();
    } else await run.sync();
    if (crashes) {
      await run.restart();
      await run.sync();
    }
    if (index < after) continue;
    await run.check(`step ${index + 1}`, step);
    await run.checkStory(`step ${index + 1}`, step, !(unseen && mode.forgetsGoneFlows));
  }
  return run.finish();
}

/** Every way a story is told. */
export function variants(story: Story): readonly Variant[] {
  return [
    { name: 'as written', run: asWritten },
    ...['application/json', 'application/vnd.kubernetes.protobuf'].map((contentType) => ({
      name: `through an API server, ${contentType}`,
      run: (story: Story, mode: ScenarioMode) => throughApiServer(story, mode, contentType),
    })),
    { name: 'with empty steps between', run: withEmptySteps },
    { name: 'split into single changes', run: split },
    { name: 'squashed into one step', run: squashed },
    { name: 'in reverse', run: reversed },
    { name: 'there and back', run: thereAndBack },
    ...[11, 12, 13].map((seed) => ({
      name: `with faults, seed ${seed}`,
      run: (story: Story, mode: ScenarioMode) => withFaults(story, mode, seed),
    })),
    ...story.steps.flatMap((_, after) =>
      [false, true].map((unseen) => ({
        name: `with a crash ${unseen ? 'in' : 'after'} step ${after + 1}`,
        run: (story: Story, mode: ScenarioMode) => withCrash(story, mode, after, unseen),
      })),
    ),
  ];
}
