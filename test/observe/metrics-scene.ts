import type { Family } from '../../src/base/ip.js';
import type { ProxyMode } from '../../src/config/effective.js';
import { gateStates } from '../../src/config/gates.js';
import type { SyncReport } from '../../src/dataplane/contract.js';
import type { ModeCounts } from '../../src/dataplane/contract.js';
import { Progress } from '../../src/record/progress.js';
import { modeDefinition } from '../../src/dataplane/modes.js';
import type { FlowTableSize } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import type { EndedSync } from '../../src/observe/cycle-observer.js';
import { ProxyMetrics, type SourceState } from '../../src/observe/metrics.js';
import { refOf, type Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter } from '../../src/state/writer.js';
import { parseExposition, type MetricFamily } from '../support/exposition.js';
import { FakeClock } from '../support/fake-clock.js';

export const START_MS = Date.UTC(2026, 0, 2);
export const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];

export interface Scene {
  readonly clock: FakeClock;
  readonly metrics: ProxyMetrics;
  readonly progress: Progress;
  readonly sources: SourceState[];
  readonly counted: { packets: ModeCounts | null };
  readonly setFlows: (size: FlowTableSize | null) => void;
  readonly upsert: (...rows: readonly Row[]) => void;
  readonly remove: (...rows: readonly Row[]) => void;
  readonly writer: SourceWriter;
  scrape(): Promise<ReadonlyMap<string, MetricFamily>>;
}

/** Metrics of a state whose one source is complete, on a clock that begins at START_MS. */
export function scene(families = FAMILIES, complete = true, mode: ProxyMode = 'nftables'): Scene {
  let flows: FlowTableSize | null = null;
  const clock = new FakeClock(0);
  const counted: Scene['counted'] = { packets: null };
  const sources: SourceState[] = [];
  const wallClock = (): bigint => BigInt(Math.round((START_MS + clock.now()) * 1000)) * 1000n;
  const progress = new Progress(families, clock, wallClock);
  const metrics = new ProxyMetrics({
    host: { ...LINUX_HOST, flowTableSize: () => flows },
    mode: { metrics: modeDefinition(mode).metrics, modeCounts: () => Promise.resolve(counted.packets) },
    progress,
    version: 'v1.37.2',
    features: gateStates({}),
    sources: () => sources,
    clock,
    wallClock,
  });
  const store = new Store();
  store.onChange((edits) => {
    progress.committed(edits, store.snapshot.ready);
    metrics.committed({ edits, ready: store.snapshot.ready });
  });
  const writer = store.register('test');
  if (complete) writer.complete();
  return {
    clock,
    metrics,
    progress,
    sources,
    counted,
    writer,
    upsert: (...rows) => {
      writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    },
    remove: (...rows) => {
      writer.apply(rows.map((row) => ({ type: 'remove', ref: refOf(row) })));
    },
    setFlows: (size) => {
      flows = size;
    },
    scrape: async () => parseExposition(await metrics.scrape('text')),
  };
}

export function report(family: Family, fields: Partial<SyncReport> = {}): SyncReport {
  const counts = { transactions: 1, elementOperations: 3, ruleOperations: 0, bytes: 400 };
  return {
    family,
    full: false,
    ...counts,
    repairs: [],
    problems: [],
    rules: null,
    quarantined: [],
    flows: new Set(),
    ...fields,
  };
}

/** A run takes every change so far, with these frontends. */
export function take({ progress }: Scene, ...frontends: readonly string[]): void {
  progress.take();
  progress.planned();
  for (const family of progress.families) family.sending(new Set(frontends));
}

export function acknowledge({ metrics, progress }: Scene, report: SyncReport): void {
  const changes = progress.of(report.family)?.acknowledge();
  if (changes === undefined) return;
  const table = { frontend: () => undefined, portsWithoutLocal: { internal: 1, external: 2 }, conflictCount: 3 };
  metrics.acknowledged({ report, changes, table });
}

/** A sync that the kernel refused. */
export function failed(family: Family, full: boolean, seconds: number, errno: string | null): EndedSync {
  return { family, full, seconds, result: { type: 'failure', error: new Error(errno ?? ''), errno }, counts: true };
}

/** The end of a family's sync. */
export function sync(world: Scene, family: Family, fields: Partial<SyncReport> = {}, seconds = 0.003): void {
  acknowledge(world, report(family, fields));
  world.metrics.syncEnded({
    family: family,
    full: fields.full ?? false,
    seconds: seconds,
    result: { type: 'success' },
    counts: true,
  });
}
