import { BUILT_IN_TIMEOUTS } from '../../src/base/conntrack-timeouts.js';
import { NO_EVENTS } from '../../src/base/events.js';
import { FAMILIES, familyOf, parseAddress, type Family } from '../../src/base/ip.js';
import { Progress } from '../../src/record/progress.js';
import { SyncCycle } from '../../src/control/sync-cycle.js';
import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, Inspection, SyncReport, WatchForeignChanges } from '../../src/dataplane/contract.js';
import type { OpenMode } from '../../src/dataplane/mode.js';
import { CycleObservers } from '../../src/observe/cycle-observer.js';
import { SyncLog } from '../../src/observe/sync-log.js';
import { HealthState } from '../../src/record/health.js';
import { explain, type Explanation } from '../../src/plan/explain.js';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../src/plan/types.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter, StateChange } from '../../src/state/writer.js';
import type { NativeAddon } from '../../src/native/contract.js';
import { FakeClock } from './fake-clock.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { NO_LOOPBACK } from './no-loopback.js';
import { SeededRandom } from './random.js';
import { RecordingLog } from './recording-log.js';
import type { Story } from './scenario-file.js';
import { scenarioConfig, type ScenarioMode, type ScenarioWorld } from './scenario-world.js';

/** No story asks where metrics are served. */
const UNUSED = { address: parseAddress('127.0.0.1')!, port: 0 };
/** After which a suspicion is looked into. */
const SUSPICION_MS = 10;

/** How long the dataplane may take from one look at its clock to the next. */
const LOOKS_MS = [0, 0.01, 0.1];

/** How long attempts to connect are gathered for a pass over them. */
const ATTEMPTS_MS = 100;

/** No other mode was there before. */
const NO_LEFTOVERS = { removed: false, finished: true, goneFlows: new Map<never, never>() };

/** A dataplane that keeps what its last sync reported. */
class Reported implements FamilyDataplane {
  readonly family: Family;
  readonly polls: boolean;
  readonly resets: FamilyDataplane['resets'];
  last: SyncReport | null = null;

  constructor(private readonly dataplane: FamilyDataplane) {
    this.family = dataplane.family;
    this.polls = dataplane.polls;
    this.resets = dataplane.resets;
  }

  get awaitChange(): FamilyDataplane['awaitChange'] {
    return this.dataplane.awaitChange;
  }

  get lacksTimeouts(): boolean {
    return this.dataplane.lacksTimeouts;
  }

  async apply(table: ForwardingTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    this.last = null;
    this.last = await this.dataplane.apply(table, change, options);
    return this.last;
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.dataplane.goneFlows();
  }

  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    return this.dataplane.clearGoneFlows(keys);
  }

  prepare(): void {
    this.dataplane.prepare();
  }

  audit(): Promise<boolean> {
    return this.dataplane.audit();
  }

  probe(): Promise<boolean> {
    return this.dataplane.probe();
  }

  end(): void {
    this.dataplane.end();
  }

  refused(): ReturnType<FamilyDataplane['refused']> {
    return this.dataplane.refused();
  }

  unremembered(): ReturnType<FamilyDataplane['unremembered']> {
    return this.dataplane.unremembered();
  }

  dump(plan: FamilyTable): Promise<readonly string[]> {
    return this.dataplane.dump(plan);
  }

  inspect(...question: Parameters<FamilyDataplane['inspect']>): Promise<Inspection> {
    return this.dataplane.inspect(...question);
  }
}

/** One life of the process: everything between a commit of state and the kernel's seam, without sockets and timers. */
export class ScenarioProcess {
  readonly store = new Store();
  private readonly writer: SourceWriter;
  private readonly dataplanes: Readonly<Record<Family, Reported>>;
  private readonly cycle: SyncCycle;
  private readonly health: HealthState;
  /** Tells of foreign changes; null: nobody listens yet. */
  private tell: Parameters<WatchForeignChanges>[0] | null = null;
  /** The next pass is the first one, or one that makes up for it. */
  private first = true;
  /** The cycle asked for a pass. */
  private asked = false;

  private constructor(
    private readonly world: ScenarioWorld,
    private readonly story: Pick<Story, 'settings' | 'localAddresses'>,
    mode: OpenMode,
    private readonly clock: FakeClock,
    readonly log: RecordingLog,
    addon: NativeAddon,
  ) {
    const { store } = this;
    const wallClock = (): bigint => BigInt(Math.floor(clock.now()));
    const progress = new Progress(FAMILIES, clock, wallClock);
    this.health = new HealthState(progress, 60_000, clock, wallClock);
    this.writer = store.register('story');
    const dataplane = (family: Family): Reported => new Reported(mode.dataplane(family));
    this.dataplanes = { IPv4: dataplane('IPv4'), IPv6: dataplane('IPv6') };
    const watch: WatchForeignChanges = (tell) => {
      this.tell = tell;
      return () => undefined;
    };
    this.cycle = new SyncCycle({
      store,
      progress,
      log,
      clock,
      events: NO_EVENTS,
      observers: new CycleObservers(new SyncLog(log, clock)),
      settings: { ...story.settings, kubernetes: null, healthz: null, metrics: UNUSED, resetRemovedEndpoints: false },
      mode: {
        dataplane: (family) => this.dataplanes[family],
        watch,
        takeover: { proceed: () => Promise.resolve(NO_LEFTOVERS), retire: () => Promise.resolve() },
      },
      conntrack: world.flows && new ConntrackReconciler(addon.conntrack),
      endingFlows: null,
      health: this.health,
      serviceHealth: { sync: () => Promise.resolve() },
      loopback: NO_LOOPBACK,
      localAddresses: () => story.localAddresses,
      // The story says when a pass is due.
      loop: {
        trigger: () => (this.asked = true),
        triggerNow: () => (this.asked = true),
        proceed: () => (this.asked = true),
      },
      onGuarded: () => undefined,
      onComplete: () => undefined,
      onFatal: (error) => {
        throw error;
      },
    });
  }

  /** What has to be known before anything is programmed; null: nothing. */
  get held(): string | null {
    return this.health.held();
  }

  /** @param addon of the world, or one that stands before it. */
  static async start(
    mode: ScenarioMode,
    world: ScenarioWorld,
    story: Pick<Story, 'settings' | 'localAddresses'>,
    addon: NativeAddon = world.addon,
  ): Promise<ScenarioProcess> {
    const clock = new FakeClock();
    const log = new RecordingLog();
    const random = new SeededRandom(1);
    const parts = {
      config: scenarioConfig(mode),
      addon,
      log,
      // What comes after something else has another time, as on a slow machine.
      now: () => clock.elapse(random.pick(LOOKS_MS)),
      onTransaction: () => undefined,
      isTcpBeLiberal: () => Promise.resolve(false),
      conntrackTimeouts: () => BUILT_IN_TIMEOUTS,
      interfaceMac: () => null,
    };
    return new ScenarioProcess(world, story, await mode.definition.open(parts, FAMILIES), clock, log, addon);
  }

  table(family: Family): ForwardingTable {
    return this.cycle.planner.tables[family];
  }

  /** What the last sync of a family reported; null when it failed. */
  report(family: Family): SyncReport | null {
    return this.dataplanes[family].last;
  }

  dump(family: Family): Promise<readonly string[]> {
    return this.dataplanes[family].dump(this.table(family));
  }

  explain({ source, destination, port, protocol, inputInterface }: KernelPacket): Explanation {
    const { settings, localAddresses } = this.story;
    const sender = { type: 'address', address: source, interface: inputInterface } as const;
    const table = this.table(familyOf(destination));
    return explain(this.store.snapshot, table, settings, localAddresses, { sender, destination, port, protocol });
  }

  /** What the kernel holds about a packet. */
  async inspect(packet: KernelPacket): Promise<{ readonly scope: PacketScope; readonly inspection: Inspection }> {
    const { source, destination, port, protocol } = packet;
    const family = familyOf(destination);
    const { frontend, affinitySeconds, clientKey, verdict } = this.explain(packet);
    const key = frontend?.key ?? frontendKey(destination, port, protocol);
    const scope = { frontend: key, addresses: [source, destination], destination };
    const endpoints = verdict.type === 'forward' ? verdict.endpoints : [];
    const affinity =
      frontend === null || affinitySeconds === null
        ? null
        : { source, seconds: affinitySeconds, clientKey, servicePort: frontend.servicePort, endpoints };
    const inspection = await this.dataplanes[family].inspect(this.table(family), scope, affinity);
    return { scope, inspection };
  }

  apply(changes: readonly StateChange[]): void {
    this.writer.apply(changes);
  }

  /** The story says nothing more: all comes from other sources. */
  complete(): void {
    this.writer.complete();
  }

  /**
   * One pass of both families; rejects when one failed, after the other had its turn.
   *
   * @param touched somebody else has done something to the ruleset, of which the kernel tells.
   */
  async sync(touched = false): Promise<void> {
    if (touched) await this.suspect();
    await this.pass(this.first);
    this.first = false;
  }

  /** One pass in which no time goes by, so that nothing becomes due. */
  async syncAtOnce(): Promise<void> {
    await this.run(false);
  }

  /** Lets time go by, with the passes that the cycle asks for meanwhile, again where they fail, and a full one at the end. */
  async period(ms: number): Promise<void> {
    await this.wait(ms);
    await this.pass(true);
    this.first = false;
  }

  /** The same without the full pass. */
  async wait(ms: number): Promise<void> {
    for (const end = this.clock.now() + ms; this.clock.now() < end;) {
      const next = Math.min(this.clock.next ?? end, this.clock.now() + 1000, end);
      await this.clock.advance(Math.max(next - this.clock.now(), 0));
      if (!this.asked) continue;
      const succeeded = await this.pass(this.first).then(
        () => true,
        () => false,
      );
      if (succeeded) this.first = false;
      else this.asked = true;
    }
  }

  /** Neither asks for anything nor is told of anything any more. */
  stop(): void {
    this.cycle.stop();
  }

  private async run(full: boolean): Promise<void> {
    this.asked = false;
    await this.cycle.run({ full });
    // What goes on beside syncs may take its time, and longer the busier the machine is.
    for (const family of FAMILIES) await this.report(family)?.background;
  }

  private async pass(full: boolean): Promise<void> {
    await this.run(full);
    await this.passOverAttempts();
    if (this.cycle.flowsRefused) throw new Error('stale flows are left');
  }

  /** Whether a pass was asked for since this was last asked. */
  private takeAsked(): boolean {
    const { asked } = this;
    this.asked = false;
    return asked;
  }

  /** The run that follows shortly when attempts to connect may be stale. What was reported stays what the sync itself did. */
  private async passOverAttempts(): Promise<void> {
    this.takeAsked();
    await this.clock.advance(ATTEMPTS_MS);
    if (!this.takeAsked()) return;
    const reports = FAMILIES.map((family) => [family, this.report(family)] as const);
    await this.cycle.run({ full: false });
    for (const [family, report] of reports) this.dataplanes[family].last = report;
  }

  private async suspect(): Promise<void> {
    this.world.touch();
    this.tell?.({ families: FAMILIES, missed: false, process: null });
    await this.clock.advance(SUSPICION_MS);
  }

  /** Syncs until it works, as the loop does. */
  async syncUntilDone(attempts: number): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.sync();
        return;
      } catch (error) {
        if (attempt >= attempts) throw error;
      }
    }
  }
}
