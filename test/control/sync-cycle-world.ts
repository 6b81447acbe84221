import type { ProxyEvent } from '../../src/base/events.js';
import { parseAddress, type Family } from '../../src/base/ip.js';
import { Progress } from '../../src/record/progress.js';
import { SyncCycle, type CycleMode } from '../../src/control/sync-cycle.js';
import type { TakeoverPass } from '../../src/control/takeover.js';
import {
  type ConnectionResets,
  type FamilyDataplane,
  type Inspection,
  type SyncReport,
  type WatchForeignChanges,
} from '../../src/dataplane/contract.js';
import { CycleObservers, type CycleObserver } from '../../src/observe/cycle-observer.js';
import { SyncLog } from '../../src/observe/sync-log.js';
import { HealthState } from '../../src/record/health.js';
import type { FrontendKey, TableChange } from '../../src/plan/types.js';
import type { Row, ServiceRow } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { NO_LOOPBACK } from '../support/no-loopback.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { service } from '../support/rows.js';

const FAMILIES = ['IPv4', 'IPv6'] as const;
export const WEB = service('web', { clusterIPs: ['10.96.0.10', 'fd00::10'], ports: [{ port: 53, protocol: 'UDP' }] });

/** A dataplane that takes what it is given, unless it is told to fail. */
class FakeDataplane implements FamilyDataplane {
  /** A line for each call: what changed, or `full`. */
  readonly calls: string[] = [];
  /** What the next calls do instead. */
  readonly failures: Error[] = [];
  /** Of the next report. */
  next: Partial<SyncReport> = {};
  different = false;
  /** What {@link goneFlows} answers. */
  readonly gone = new Set<FrontendKey>();
  /** Whether it says of which frontends flows may be stale. */
  reportsFlows = true;
  private synced = false;

  polls = false;
  awaitChange: FamilyDataplane['awaitChange'] = null;
  resets: ConnectionResets | null = null;
  lacksTimeouts = false;

  constructor(readonly family: Family) {}

  prepare(): void {
    // There is nothing to begin.
  }

  audit(): Promise<boolean> {
    this.calls.push('audit');
    return Promise.resolve(this.different);
  }

  probe(): Promise<boolean> {
    throw new Error('a mode whose kernel notifies is not probed');
  }

  apply(_table: unknown, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const full = options.full || !this.synced;
    this.calls.push(full ? 'full' : [...change.frontends].join());
    const failure = this.failures.shift();
    this.synced = failure === undefined;
    if (failure !== undefined) return Promise.reject(failure);
    const flows = !this.reportsFlows ? new Set<FrontendKey>() : full ? 'all' : change.frontends;
    const counts = { transactions: 1, elementOperations: 1, ruleOperations: 0, bytes: 1 };
    const report: SyncReport = {
      family: this.family,
      full,
      ...counts,
      repairs: [],
      problems: [],
      quarantined: [],
      rules: null,
      flows,
    };
    const { next } = this;
    this.next = {};
    return Promise.resolve({ ...report, ...next });
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.gone;
  }

  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    for (const key of keys) this.gone.delete(key);
    return Promise.resolve();
  }

  end(): void {
    // It ends by itself.
  }

  dump(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  inspect(): Promise<Inspection> {
    return Promise.resolve({ lines: [], remembered: null });
  }

  refused(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  unremembered(): Promise<null> {
    return Promise.resolve(null);
  }
}

interface World {
  readonly cycle: SyncCycle;
  readonly clock: FakeClock;
  readonly log: RecordingLog;
  readonly events: ProxyEvent[];
  readonly health: HealthState;
  readonly dataplanes: Readonly<Record<Family, FakeDataplane>>;
  /** What the cycle asked of its loop and told its owner. */
  readonly asked: string[];
  /** What each look for stale flows was about. */
  readonly conntrack: {
    refuses: boolean;
    /** When the kernel has listed its flows. */
    listed: Promise<void>;
    readonly passes: string[];
  };
  /** What the next takeovers come to. */
  readonly removals: TakeoverPass[];
  readonly counted: string[];
  readonly progress: Progress;
  readonly upsert: (...rows: readonly Row[]) => void;
  readonly remove: (row: ServiceRow) => void;
  readonly tell: Parameters<WatchForeignChanges>[0];
}

export function world(settings = planSettings(), observer: CycleObserver = {}): World {
  const clock = new FakeClock();
  const [log, store, asked, events] = [new RecordingLog(), new Store(), new Array<string>(), new Array<ProxyEvent>()];
  const [removals, counted] = [new Array<TakeoverPass>(), new Array<string>()];
  const wallClock = (): bigint => BigInt(clock.now());
  const progress = new Progress(FAMILIES, clock, wallClock);
  const health = new HealthState(progress, 60_000, clock, wallClock);
  const dataplanes = { IPv4: new FakeDataplane('IPv4'), IPv6: new FakeDataplane('IPv6') };
  const conntrack: World['conntrack'] = { refuses: false, listed: Promise.resolve(), passes: [] };
  let tell: World['tell'] = () => undefined;
  const note = (what: string) => (): void => void asked.push(what);
  const cycle = new SyncCycle({
    store,
    progress,
    health,
    log,
    clock,
    observers: new CycleObservers(new SyncLog(log, clock), countingInto(counted), observer),
    settings: {
      ...settings,
      kubernetes: null,
      healthz: null,
      metrics: { address: parseAddress('::1')!, port: 0 },
      resetRemovedEndpoints: true,
    },
    mode: {
      dataplane: (family) => dataplanes[family],
      watch: (listener) => {
        tell = listener;
        return note('unwatched');
      },
      takeover: takeover('takeover', asked, removals),
    },
    conntrack: {
      reconcile: async ({ table: { family }, full, changed }) => {
        conntrack.passes.push(`${family} ${[...(full ? ['all'] : []), ...changed].join()}`);
        const errors = conntrack.refuses ? [new Error('EPERM')] : [];
        await conntrack.listed;
        return { flows: 0, deleted: 0, errors };
      },
    },
    endingFlows: null,
    serviceHealth: { sync: () => Promise.resolve() },
    loopback: NO_LOOPBACK,
    localAddresses: () => [],
    events: { record: (event) => events.push(event) },
    loop: { trigger: note('trigger'), triggerNow: note('now'), proceed: note('proceed') },
    onGuarded: note('guarded'),
    onComplete: note('complete'),
    onFatal: ({ message }) => asked.push(message),
  });
  store.onChange((edits, receivedAt) => {
    cycle.stateChanged(edits, receivedAt);
  });
  const writer = store.register('test');
  writer.complete();
  asked.length = 0;
  const upsert = (...rows: readonly Row[]): void => {
    writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  };
  const remove = (row: ServiceRow): void => {
    writer.apply([{ type: 'remove', ref: row }]);
  };
  return {
    cycle,
    clock,
    log,
    events,
    health,
    dataplanes,
    asked,
    conntrack,
    removals,
    counted,
    progress,
    upsert,
    remove,
    tell: (change) => {
      tell(change);
    },
  };
}

export function takeover(name: string, asked: string[], removals: TakeoverPass[] = []): CycleMode['takeover'] {
  return {
    proceed: () => Promise.resolve(asked.push(name)).then(() => removals.shift() ?? null),
    retire: () => Promise.resolve(asked.push('retired')).then(() => undefined),
  };
}

/** Counts syncs. */
function countingInto(counted: string[]): CycleObserver {
  return {
    acknowledged: ({ report }) => void counted.push(`${report.family} acknowledged`),
    syncEnded: ({ family, result, counts }) => {
      if (counts) counted.push(`${family} ${result.type}`);
    },
  };
}

/** The other mode that takes the place of a world's, and its dataplanes. */
export function replaceMode({ cycle, asked }: World): World['dataplanes'] {
  const others = { IPv4: new FakeDataplane('IPv4'), IPv6: new FakeDataplane('IPv6') };
  cycle.replaceMode({
    dataplane: (family) => others[family],
    watch: null,
    takeover: takeover('the other takeover', asked),
  });
  return others;
}

/** What was asked for since the last call. */
export function taken({ asked }: World): readonly string[] {
  return asked.splice(0);
}
