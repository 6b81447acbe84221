import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parseAddress } from '../../../src/base/ip.js';
import { gateStates } from '../../../src/config/gates.js';
import { defaultSettings } from '../../../src/config/defaults.js';
import { configurationFields } from '../../../src/config/write.js';
import { Progress } from '../../../src/record/progress.js';
import { modeDefinition } from '../../../src/dataplane/modes.js';
import type { SyncReport } from '../../../src/dataplane/contract.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { HealthState } from '../../../src/record/health.js';
import { ProxyMetrics } from '../../../src/observe/metrics.js';
import { SyncHistory } from '../../../src/record/sync-history.js';
import type { ServiceTraffic } from '../../../src/observe/telemetry/service-series.js';
import { Planner } from '../../../src/plan/planner.js';
import { boundPort, listen, shut } from '../../../src/serve/listener.js';
import type { FamilyView, RunningProcess } from '../../../src/serve/running-process.js';
import { PageServer } from '../src/server.js';
import type { LeftOut } from '../../../src/sources/left-out.js';
import type { Row } from '../../../src/state/rows.js';
import { Store } from '../../../src/state/store.js';
import { fromFile } from '../../../test/config/load-from.js';
import { FakeClock } from '../../../test/support/fake-clock.js';
import { planSettings } from '../../../test/support/plan-settings.js';
import { RecordingLog } from '../../../test/support/recording-log.js';

const FAMILY = 'IPv4';
const LOOPBACK = parseAddress('127.0.0.1')!;

const REPORT: SyncReport = {
  family: FAMILY,
  full: false,
  transactions: 1,
  elementOperations: 1,
  ruleOperations: 0,
  bytes: 100,
  repairs: [],
  problems: [],
  rules: null,
  quarantined: [],
  flows: new Set(),
};

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** A page server before a state and its plan, without a kernel. */
export class PageScene {
  readonly store = new Store();
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly progress = new Progress([FAMILY], this.clock, () => 0n);
  readonly health = new HealthState(this.progress, 10_000, this.clock, () => 0n);
  readonly running: RunningProcess;
  readonly history = new SyncHistory();
  /** In which versions objects of the API server were read, by resource. */
  readonly held = new Map<string, ReadonlyMap<string, string>>();
  /** Objects that are not used, or not whole. */
  leftOut: readonly LeftOut[] = [];
  /** Of all Services; null: it is not counted. */
  traffic: readonly ServiceTraffic[] | null = null;
  /** When it was last read; null: always now. */
  trafficAt: number | null = null;
  readonly server: PageServer;
  port = 0;
  /** That are open. */
  connections = 0;
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings());
  private readonly loaded = fromFile('mode: nftables\nipvs: {scheduler: lc}');

  /** @param folder of the page's files. */
  constructor(folder: string) {
    const { store, clock, progress, health, history, loaded, log } = this;
    const metrics = new ProxyMetrics({
      host: LINUX_HOST,
      mode: { metrics: modeDefinition('nftables').metrics, modeCounts: () => Promise.resolve(null) },
      progress,
      version: 'v1.37.2',
      features: gateStates({}),
      clock,
      wallClock: () => 0n,
      sources: () => [],
    });
    metrics.syncEnded({ family: FAMILY, full: false, seconds: 0.003, result: { type: 'success' }, counts: true });
    const view: FamilyView = {
      family: FAMILY,
      table: this.planner.tables[FAMILY],
      history,
      ending: { counts: { connections: 0, endpoints: 0 }, limitation: () => null },
      dataplane: { resets: null, inspect: () => Promise.reject(new Error('there is no kernel')) },
    };
    this.running = {
      release: '0.1.0',
      host: LINUX_HOST,
      snapshot: store.snapshot,
      families: [view],
      health,
      progress,
      loaded: () => loaded,
      configuration: () => configurationFields(loaded.document),
      defaults: () => defaultSettings('nftables', 'linux'),
      refusal: () => null,
      planned: () => planSettings(),
      onChange: (listener) => store.onChange(listener),
      latencies: () => metrics.latencies(),
      sourceErrors: () => [],
      metrics: () => metrics.scrape('text'),
      sources: () => [{ source: 'test', synced: true, sinceLastEventMs: 5, failures: { watch: 2, list: 0 } }],
      kubernetes: { api: () => null, versionsOf: (resource) => this.held.get(resource) ?? null },
      waitingFor: () => store.waitingFor(),
      traffic: () => this.traffic && Promise.resolve({ at: this.trafficAt ?? clock.now(), services: this.traffic }),
      lend: () => () => undefined,
      suspect: () => undefined,
      fullAffinity: () => [],
      loopbackFailures: () => [],
      silentListeners: () => [],
      crowding: () => [],
      logFaults: () => [],
      leftOut: () => this.leftOut,
      now: () => clock.now(),
    };
    this.server = new PageServer({ running: this.running, folder, clock, log });
    health.nodeEligible = true;
  }

  /** Says these rows, and that they are all. */
  say(rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    this.writer.complete();
  }

  remove(row: Row & { readonly namespace: string }): void {
    this.writer.apply([{ type: 'remove', ref: row }]);
  }

  /** Plans what was said, and has it acknowledged. */
  sync(report: Partial<SyncReport> = {}, author: string | null = null): void {
    const table = this.planner.tables[FAMILY];
    this.progress.take();
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    this.progress.planned();
    this.health.planned(table);
    const { frontends } = table.takeChange();
    this.progress.of(FAMILY)?.sending(frontends);
    this.progress.of(FAMILY)?.acknowledge(
      (report.quarantined ?? []).map((quarantined) => ({
        ...quarantined,
        servicePort: table.frontend(quarantined.frontend)?.servicePort ?? null,
      })),
    );
    const times = { syncMs: 1, sinceChangeMs: 2 };
    this.history.acknowledged({ ...REPORT, ...report }, frontends, (key) => table.frontend(key), times, author);
  }

  async ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, { redirect: 'manual', ...init });
    return { status: response.status, headers: response.headers, body: await response.text() };
  }

  async read<Answer>(path: string): Promise<Answer> {
    const { status, body } = await this.ask(`/ui/api/${path}`);
    if (status !== 200) throw new Error(`${status}: ${body}`);
    return JSON.parse(body) as Answer;
  }
}

/** One that is served, with these files. */
export async function pageScene(t: Test, files: Readonly<Record<string, string>> = {}): Promise<PageScene> {
  const folder = mkdtempSync(join(tmpdir(), 'page-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const scene = new PageScene(folder);
  const http = await listen(
    { address: LOOPBACK, port: 0, dualStack: false },
    (request, response) => void scene.server.answer(request, response, true),
    (error) => {
      throw error;
    },
  );
  http.on('connection', (socket) => {
    scene.connections++;
    socket.once('close', () => scene.connections--);
  });
  scene.port = boundPort(http) ?? 0;
  t.teardown(async () => {
    scene.server.close();
    await shut(http);
    rmSync(folder, { recursive: true });
  });
  return scene;
}
