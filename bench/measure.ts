import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../test/support/api-server/control.js';
import { ApiServerProcess, type BenchApiServer } from './api-server.js';
import {
  changedSlice,
  ENDPOINT_PORT,
  nodeObject,
  ProbeService,
  rollingSteps,
  serviceAddress,
  type Cluster,
} from './cluster.js';
import { writeConfiguration } from './configuration.js';
import { die } from './dying.js';
import type { InsideMeasures, OutsideMeasures } from './measures.js';
import { Proxy, type Sync } from './proxy.js';
import { RealApiServer } from './real-api-server.js';
import { say } from './say.js';
import { spread, type Spread } from './statistics.js';
import { prepareNetwork, Traffic } from './traffic.js';

/** A mode, and for those with rules of iptables the flavour of its programs: the process chooses where none is named. */
export const MODES = [
  'nftables',
  'iptables',
  'iptables-nft',
  'iptables-legacy',
  'ipvs',
  'ipvs-nft',
  'ipvs-legacy',
] as const;
export type BenchMode = (typeof MODES)[number];

export interface MeasureOptions {
  readonly cluster: Cluster;
  readonly mode: BenchMode;
  /** A shell command that starts the proxy, with `{config}` and `{kubeconfig}` for files. */
  readonly command: string;
  /** Whether its log is ours. */
  readonly ours: boolean;
  /** Where kube-apiserver and etcd are; null: the test API server is used. */
  readonly apiServer: string | null;
  /** For configuration and kubeconfig. */
  readonly directory: string;
  /** How many single changes. */
  readonly changes: number;
  /** How long endpoints are churned. */
  readonly churnSeconds: number;
  /** How many of them a second. */
  readonly churnRate: number;
  readonly connections: number;
  /** How long the proxy is left alone before its memory is looked at. */
  readonly settleMs: number;
  /** How long it is left alone to see what that takes of a processor. */
  readonly idleSeconds: number;
}

export interface Measured {
  readonly outside: OutsideMeasures;
  readonly inside: InsideMeasures | null;
}

const KERNEL_SETTLE_MS = 1000;
const WARM_UP = 20;
/** Single changes end after this time, however few they were: a slow proxy has shown what it can by then. */
const CHANGES_LIMIT_MS = 60_000;
const ROLLED_SERVICES = 100;
const CHURN_PROBE_MS = 200;
const FIRST_PACKETS = 200;
const SERVICES_CONNECTED = 64;
const CHECKS = 3;
/** A mode that lists everything for that gives it a hundredth of the time: after one that took longer the next is more than a minute away. */
const LONG_CHECK_MS = 600;
const HOUR = '1h0m0s';

/** Measures one proxy with one cluster. The network namespace must be fresh and this process's own. */
export async function measure(options: MeasureOptions): Promise<Measured> {
  prepareNetwork();
  const { cluster, directory, apiServer } = options;
  const server =
    apiServer === null
      ? await ApiServerProcess.start(cluster, directory)
      : await RealApiServer.start(apiServer, cluster, directory);
  const traffic = await Traffic.start();
  try {
    return await new Measurement(options, server, traffic).run();
  } finally {
    traffic.stop();
    await server.stop();
  }
}

class Measurement {
  private readonly probe: ProbeService;
  private readonly config: string;

  constructor(
    private readonly options: MeasureOptions,
    private readonly server: BenchApiServer,
    private readonly traffic: Traffic,
  ) {
    this.probe = new ProbeService(options.cluster.services);
    this.config = join(options.directory, 'config.yaml');
  }

  async run(): Promise<Measured> {
    const { ours } = this.options;
    this.configure();
    say('first start, and a while with nothing changing');
    await this.server.put(nodeObject(), this.probe.service(), this.probe.next().slice);
    const first = this.start();
    try {
      const cold = await this.coldStart(first);
      say('single changes');
      const changes = ours ? await this.changes(first) : null;
      const changeSeenMs = await this.seenChanges();
      say(`${this.options.churnRate} changes a second, a rollout, new connections`);
      const churn = await this.churn(first);
      const rollingMs = await this.roll();
      const fullCheckMs = ours ? await this.fullCheck(first) : 0;
      const connections = await this.connect();
      say('an endpoint dies');
      const dying = await die(this.server, this.traffic, this.options.cluster.services + 1);
      const { peak } = first.memory();
      await first.stop();
      say('restart');
      const restart = await this.restart();
      const kernelMb = await kernelMemory(this.options.mode);
      return {
        outside: {
          ...cold.outside,
          peakMb: peak,
          kernelMb,
          changeSeenMs,
          rollingMs,
          ...churn,
          ...connections,
          dying,
          restartHealthyMs: restart.healthyMs,
          restartSyncedMs: restart.syncedMs,
          restartCpuSeconds: restart.cpuSeconds,
        },
        inside: changes && { ...cold.inside, ...changes, fullCheckMs, ...restart.inside },
      };
    } finally {
      await first.stop();
    }
  }

  private start(): Proxy {
    const { command } = this.options;
    return new Proxy(command.replaceAll('{config}', this.config).replaceAll('{kubeconfig}', this.server.kubeconfig));
  }

  /** Nothing is changed of another running proxy, because a change may end it; it logs as a node has it from the start. */
  private reconfigure(fields: Parameters<Measurement['configure']>[0] = {}): void {
    if (this.options.ours) this.configure(fields);
  }

  private configure({ syncPeriod = HOUR, verbosity = this.options.ours ? 2 : 0 } = {}): void {
    const { mode } = this.options;
    writeConfiguration({ file: this.config, kubeconfig: this.server.kubeconfig, mode, syncPeriod, verbosity });
  }

  private async coldStart(proxy: Proxy): Promise<{
    readonly outside: Pick<
      OutsideMeasures,
      | 'coldHealthyMs'
      | 'coldSyncedMs'
      | 'coldAnsweredMs'
      | 'coldCpuSeconds'
      | 'coldKernelSeconds'
      | 'residentMb'
      | 'anonymousMb'
      | 'idleCpuPercent'
      | 'idleWakeupsPerSecond'
    >;
    readonly inside: Pick<InsideMeasures, 'coldSyncMs' | 'coldBytes' | 'coldOperations'>;
  }> {
    const synced = this.syncOf(proxy, ({ full }) => full);
    const answered = this.traffic.answered(serviceAddress(this.options.cluster.services - 1));
    const healthy = await proxy.healthy();
    const answeredAt = await answered;
    // The time of programs that a proxy starts counts once they have ended, as they have when it reports that it is synced.
    const coldSyncedMs = await proxy.syncedMs();
    const [coldCpuSeconds, coldKernelSeconds] = [proxy.cpuSeconds(), proxy.kernelSeconds()];
    const { syncMs, bytes, operations } = await synced;
    await sleep(this.options.settleMs);
    const { idleSeconds } = this.options;
    const [idleFrom, wakeupsFrom] = [proxy.cpuSeconds(), proxy.wakeups()];
    await sleep(idleSeconds * 1000);
    const idleCpuPercent = ((proxy.cpuSeconds() - idleFrom) * 100) / idleSeconds;
    const idleWakeupsPerSecond = (proxy.wakeups() - wakeupsFrom) / idleSeconds;
    const { resident, anonymous } = proxy.memory();
    return {
      outside: {
        coldHealthyMs: healthy - proxy.startedAt,
        coldAnsweredMs: answeredAt - proxy.startedAt,
        coldCpuSeconds,
        coldKernelSeconds,
        coldSyncedMs,
        residentMb: resident,
        anonymousMb: anonymous,
        idleCpuPercent,
        idleWakeupsPerSecond,
      },
      inside: { coldSyncMs: syncMs, coldBytes: bytes, coldOperations: operations },
    };
  }

  /** Takes an endpoint of one Service away and puts it back, again and again, one Service after the other. */
  private async changes(
    proxy: Proxy,
  ): Promise<Pick<InsideMeasures, 'changeMs' | 'changeKernelMs' | 'changeBytes' | 'changeOperations'>> {
    const { cluster, changes } = this.options;
    const times: number[] = [];
    const syncs: Sync[] = [];
    let kernelBefore = 0;
    for (let round = 0; round < changes + WARM_UP; round++) {
      if (round === WARM_UP) kernelBefore = proxy.kernelSeconds();
      const acknowledged = proxy.sync(({ transactions }) => transactions > 0);
      const slice = changedSlice(cluster, Math.floor(round / 2) % cluster.services, round % 2 === 1);
      const sentAt = await this.server.put(slice);
      const sync = await acknowledged;
      await sleep(5);
      if (round < WARM_UP) continue;
      times.push(sync.seenAt - sentAt);
      syncs.push(sync);
    }
    return {
      changeMs: spread(times),
      changeKernelMs: ((proxy.kernelSeconds() - kernelBefore) * 1000) / changes,
      changeBytes: Math.max(...syncs.map(({ bytes }) => bytes)),
      changeOperations: Math.max(...syncs.map(({ operations }) => operations)),
    };
  }

  private async seenChanges(): Promise<Spread> {
    const times: number[] = [];
    const limit = monotonicMs() + CHANGES_LIMIT_MS;
    while (times.length < this.options.changes && monotonicMs() < limit) {
      times.push(await this.probeMs());
      await sleep(5);
    }
    return spread(times);
  }

  /** Time from a change of the probe's endpoint on the watch to the first connection that reaches the new one. */
  private async probeMs(): Promise<number> {
    const { slice, address } = this.probe.next();
    const sentAt = await this.server.put(slice);
    return (await this.traffic.reaches(this.probe.address, address)) - sentAt;
  }

  private async churn(
    proxy: Proxy,
  ): Promise<Pick<OutsideMeasures, 'churnCpuPercent' | 'churnLagMs' | 'churnResidentMb' | 'churnGrowthMb'>> {
    const { cluster, churnSeconds, churnRate, settleMs } = this.options;
    const lags: number[] = [];
    const resident: number[] = [];
    const done = { churning: false };
    // As a node runs it: a line of log per change costs as much as the change.
    this.reconfigure({ verbosity: 0 });
    await sleep(settleMs);
    const cpuBefore = proxy.cpuSeconds();
    const startedAt = monotonicMs();
    const churning = this.server.churn(cluster, churnRate, churnSeconds).then(() => {
      done.churning = true;
    });
    while (!done.churning) {
      lags.push(await this.probeMs());
      resident.push(proxy.memory().resident);
      await Promise.race([churning, sleep(CHURN_PROBE_MS)]);
    }
    // A change behind all others: when it is there, so are they.
    lags.push(await this.probeMs());
    const seconds = (monotonicMs() - startedAt) / 1000;
    const churnCpuPercent = ((proxy.cpuSeconds() - cpuBefore) * 100) / seconds;
    this.reconfigure();
    return {
      churnCpuPercent,
      churnLagMs: spread(lags),
      churnResidentMb: resident.at(-1) ?? 0,
      churnGrowthMb: growth(resident),
    };
  }

  private async roll(): Promise<number> {
    let startedAt: number | null = null;
    for (const slices of rollingSteps(this.options.cluster, ROLLED_SERVICES)) {
      const sentAt = await this.server.put(...slices);
      startedAt ??= sentAt;
    }
    await this.probeMs();
    return monotonicMs() - (startedAt ?? monotonicMs());
  }

  /** The periodic check, made frequent for a while. It compares the whole table after an external change of the ruleset, as here. */
  private async fullCheck(proxy: Proxy): Promise<number> {
    const times: number[] = [];
    this.configure({ syncPeriod: '1s', verbosity: 4 });
    while (times.length < CHECKS && times.every((time) => time < LONG_CHECK_MS)) {
      const checked = proxy.sync(({ full }) => full);
      execFileSync('nft', ['add', 'table', 'ip', `other-${times.length}`]);
      times.push((await checked).syncMs);
    }
    this.configure();
    await sleep(this.options.settleMs);
    return spread(times).p50;
  }

  private async connect(): Promise<
    Pick<
      OutsideMeasures,
      'connectionsPerSecond' | 'directConnectionsPerSecond' | 'firstPacketMs' | 'directFirstPacketMs'
    >
  > {
    const { cluster, connections } = this.options;
    const count = Math.min(SERVICES_CONNECTED, cluster.services);
    // The Services that were rolled over have all their endpoints again.
    const services = Array.from({ length: count }, (_, number) => serviceAddress(number));
    const endpoints = services.map((_, number) => `10.255.0.${number + 1}`);
    const firstPacketMs = await this.firstPackets(services, undefined);
    const connectionsPerSecond = await this.traffic.rate(services, 80, connections);
    const directFirstPacketMs = await this.firstPackets(endpoints, ENDPOINT_PORT);
    const directConnectionsPerSecond = await this.traffic.rate(endpoints, ENDPOINT_PORT, connections);
    return { connectionsPerSecond, directConnectionsPerSecond, firstPacketMs, directFirstPacketMs };
  }

  private async firstPackets(addresses: readonly string[], port: number | undefined): Promise<Spread> {
    const times: number[] = [];
    for (let number = 0; number < FIRST_PACKETS; number++) {
      times.push(await this.traffic.connectMs(addresses[number % addresses.length] ?? '', port));
    }
    return spread(times);
  }

  private async restart(): Promise<{
    readonly healthyMs: number;
    readonly syncedMs: number;
    readonly cpuSeconds: number;
    readonly inside: Pick<InsideMeasures, 'restartSyncMs' | 'restartOperations'>;
  }> {
    const proxy = this.start();
    try {
      const synced = this.syncOf(proxy, ({ full }) => full);
      const healthyMs = (await proxy.healthy()) - proxy.startedAt;
      const { syncMs, operations } = await synced;
      const syncedMs = await proxy.syncedMs();
      const cpuSeconds = proxy.cpuSeconds();
      return { healthyMs, syncedMs, cpuSeconds, inside: { restartSyncMs: syncMs, restartOperations: operations } };
    } finally {
      await proxy.stop();
    }
  }

  private syncOf(proxy: Proxy, test: (sync: Sync) => boolean): Promise<Sync> {
    return this.options.ours ? proxy.sync(test) : Promise.resolve(NO_SYNC);
  }
}

const NO_SYNC: Sync = { family: '', full: true, transactions: 0, operations: 0, bytes: 0, syncMs: 0, seenAt: 0 };

/** From the mean of the first quarter to that of the last. */
function growth(values: readonly number[]): number {
  const quarter = Math.ceil(values.length / 4);
  const mean = (part: readonly number[]): number => part.reduce((sum, value) => sum + value, 0) / part.length;
  return mean(values.slice(-quarter)) - mean(values.slice(0, quarter));
}

/** What the kernel frees with this namespace's ruleset, in MB. Other processes' doings at the same moment count as well. */
export async function kernelMemory(mode: BenchMode): Promise<number> {
  const before = kernelAllocated();
  // Tables of iptables-nft are among them.
  execFileSync('nft', ['flush', 'ruleset']);
  for (const program of ['iptables', 'ip6tables'])
    if (hasLegacyTables(program))
      execFileSync(`${program}-legacy-restore`, { input: '*nat\nCOMMIT\n*filter\nCOMMIT\n' });
  if (mode.startsWith('ipvs')) {
    execFileSync('ipvsadm', ['-C']);
    execFileSync('ipset', ['destroy']);
    execFileSync('ip', ['link', 'delete', 'kube-ipvs0']);
  }
  // The kernel frees sets in the background.
  await sleep(KERNEL_SETTLE_MS);
  return (before - kernelAllocated()) / 1024;
}

/** Asking the programs themselves would make them. */
function hasLegacyTables(program: string): boolean {
  const names = `/proc/net/${program.replace('tables', '_tables_names')}`;
  return existsSync(names) && readFileSync(names, 'utf8') !== '';
}

function kernelAllocated(): number {
  const text = readFileSync('/proc/meminfo', 'utf8');
  return ['SUnreclaim', 'VmallocUsed'].reduce(
    (sum, name) => sum + Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0),
    0,
  );
}
