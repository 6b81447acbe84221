import { NO_EVENTS } from '../../src/base/events.js';
import { FAMILIES, familyOf, parseAddress, type Family } from '../../src/base/ip.js';
import { Progress } from '../../src/control/progress.js';
import { SyncCycle } from '../../src/control/sync-cycle.js';
import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, Inspection, SyncReport, WatchForeignChanges } from '../../src/dataplane/contract.js';
import type { OpenMode } from '../../src/dataplane/mode.js';
import { HealthState } from '../../src/observe/health.js';
import { explain, type Explanation } from '../../src/plan/explain.js';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../src/plan/types.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter, StateChange } from '../../src/state/writer.js';
import { FakeClock } from './fake-clock.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { RecordingLog } from './recording-log.js';
import type { Story } from './scenario-file.js';
import { scenarioConfig, type ScenarioMode, type ScenarioWorld } from './scenario-world.js';

/** No story asks where metrics are served. */
const UNUSED = { address: parseAddress('127.0.0.1')!, port: 0 };
/** After which a suspicion is looked into. */
const SUSPICION_MS = 10;

/** A dataplane that keeps what its last sync reported. */
class Reported implements FamilyDataplane {
  readonly family: Family;
  last: SyncReport | null = null;

  constructor(private readonly dataplane: FamilyDataplane) {
    this.family = dataplane.family;
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

  cleanup(): Promise<void> {
    return this.dataplane.cleanup();
  }

  dump(plan: FamilyTable): Promise<readonly string[]> {
    return this.dataplane.dump(plan);
  }

  async inspect(...question: Parameters<NonNullable<FamilyDataplane['inspect']>>): Promise<Inspection> {
    const inspection = await this.dataplane.inspect?.(...question);
    if (inspection === undefined) throw new TypeError('the mode cannot tell what decides over a packet');
    return inspection;
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

  private constructor(
    private readonly world: ScenarioWorld,
    private readonly story: Pick<Story, 'settings' | 'localAddresses'>,
    mode: OpenMode,
    private readonly clock: FakeClock,
    log: RecordingLog,
  ) {
    const { store } = this;
    const wallClock = (): bigint => BigInt(clock.now());
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
      ...{ store, progress, log, clock, events: NO_EVENTS, metrics: null, tracing: null },
      settings: { ...story.settings, kubernetes: null, healthz: null, metrics: UNUSED },
      mode: {
        dataplane: (family) => this.dataplanes[family],
        watch,
        takeover: { proceed: () => Promise.resolve(null), retire: () => Promise.resolve() },
      },
      conntrack: world.flows && new ConntrackReconciler(world.addon.conntrack),
      health: this.health,
      serviceHealth: { sync: () => Promise.resolve() },
      localAddresses: () => story.localAddresses,
      // The story says when a pass is due.
      loop: { trigger: () => undefined, triggerNow: () => undefined },
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

  static async start(
    mode: ScenarioMode,
    world: ScenarioWorld,
    story: Pick<Story, 'settings' | 'localAddresses'>,
  ): Promise<ScenarioProcess> {
    const clock = new FakeClock();
    const log = new RecordingLog();
    const parts = {
      ...{ config: scenarioConfig(mode), addon: world.addon, log, now: () => clock.now() },
      onTransaction: () => undefined,
      isTcpBeLiberal: () => Promise.resolve(false),
      interfaceMac: () => null,
    };
    return new ScenarioProcess(world, story, await mode.definition.open(parts, FAMILIES), clock, log);
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

  /**
   * One pass of both families; rejects when one failed, after the other had its turn.
   *
   * @param touched somebody else has done something to the ruleset, of which the kernel tells.
   */
  async sync(touched = false): Promise<void> {
    if (touched) await this.suspect();
    await this.cycle.run({ full: this.first });
    this.first = false;
    // What goes on beside syncs may take its time, and longer the busier the machine is.
    for (const family of FAMILIES) await this.report(family)?.aside;
    if (this.cycle.flowsRefused) throw new Error('stale flows are left');
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
