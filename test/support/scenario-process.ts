import { NO_EVENTS } from '../../src/base/events.js';
import { FAMILIES, familyOf, type Family } from '../../src/base/ip.js';
import { FamilySync } from '../../src/control/family-sync.js';
import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, Inspection, SyncReport } from '../../src/dataplane/contract.js';
import type { OpenMode } from '../../src/dataplane/mode.js';
import { HealthState } from '../../src/observe/health.js';
import { explain, type Explanation } from '../../src/plan/explain.js';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { Planner } from '../../src/plan/planner.js';
import type { FrontendKey, NodePlan, PacketScope, TableChange } from '../../src/plan/types.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter, StateChange } from '../../src/state/writer.js';
import { FakeClock } from './fake-clock.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { RecordingLog } from './recording-log.js';
import type { Story } from './scenario-file.js';
import { SCENARIO_CONFIG, type ScenarioMode, type ScenarioWorld } from './scenario-world.js';

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

  dump(node: NodePlan): Promise<readonly string[]> {
    return this.dataplane.dump(node);
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
  private readonly planner: Planner;
  private readonly dataplanes: Readonly<Record<Family, Reported>>;
  private readonly syncs: readonly FamilySync[];

  private constructor(
    private readonly world: ScenarioWorld,
    private readonly story: Pick<Story, 'settings' | 'localAddresses'>,
    mode: OpenMode,
    clock: FakeClock,
    log: RecordingLog,
  ) {
    this.writer = this.store.register('story');
    this.planner = new Planner(story.settings);
    const dataplane = (family: Family): Reported => new Reported(mode.dataplane(family));
    this.dataplanes = { IPv4: dataplane('IPv4'), IPv6: dataplane('IPv6') };
    this.syncs = FAMILIES.map(
      (family) =>
        new FamilySync({
          table: this.planner.tables[family],
          dataplane: this.dataplanes[family],
          conntrack: new ConntrackReconciler(world.addon),
          health: new HealthState(60_000, clock, () => BigInt(clock.now())),
          serviceHealth: { sync: () => Promise.resolve() },
          conflicts: { update: () => 0 },
          localAddresses: () => story.localAddresses,
          metrics: null,
          events: NO_EVENTS,
          log,
        }),
    );
  }

  static async start(
    { definition }: ScenarioMode,
    world: ScenarioWorld,
    story: Pick<Story, 'settings' | 'localAddresses'>,
  ): Promise<ScenarioProcess> {
    const clock = new FakeClock();
    const log = new RecordingLog();
    const parts = {
      ...{ config: SCENARIO_CONFIG, addon: world.addon, log, now: () => clock.now() },
      onTransaction: () => undefined,
      isTcpBeLiberal: () => Promise.resolve(false),
    };
    return new ScenarioProcess(world, story, await definition.open(parts, FAMILIES), clock, log);
  }

  table(family: Family): ForwardingTable {
    return this.planner.tables[family];
  }

  /** What the last sync of a family reported; null when it failed. */
  report(family: Family): SyncReport | null {
    return this.dataplanes[family].last;
  }

  dump(family: Family): Promise<readonly string[]> {
    return this.dataplanes[family].dump(this.table(family).node);
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
    const inspection = await this.dataplanes[family].inspect(this.table(family).node, scope, affinity);
    return { scope, inspection };
  }

  apply(changes: readonly StateChange[]): void {
    this.writer.apply(changes);
  }

  /**
   * One pass of both families; rejects when one failed, after the other had its turn.
   *
   * @param full after somebody else did something to the ruleset, so that it cannot be skipped.
   */
  async sync(full = false): Promise<void> {
    if (full) this.world.touch();
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    const results = await Promise.allSettled(this.syncs.map((sync) => sync.run(full, null)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    if (this.syncs.some((sync) => sync.flowsRefused)) throw new Error('stale flows are left');
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
