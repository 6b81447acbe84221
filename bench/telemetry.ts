import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServerProcess } from './api-server.js';
import { changedSlice, nodeObject, serviceAddress } from './cluster.js';
import { writeConfiguration } from './configuration.js';
import type { MeasureOptions } from './measure.js';
import { Proxy } from './proxy.js';
import { digits } from './report.js';
import { say } from './say.js';
import { prepareNetwork, Traffic } from './traffic.js';

/** What is the same with Services counted and without. */
export interface TelemetryMeasures {
  readonly connectionsPerSecond: number;
  /** CPU time of one connection in microseconds, both ends and what the kernel does on their behalf: it tells more than the rate where others are at work. */
  readonly connectionUs: number;
  /** From a change on the watch to the kernel's acknowledgement: the median, in milliseconds. */
  readonly changeMs: number;
  /** Resident, in MB. */
  readonly residentMb: number;
}

/** Of each kind as many as rounds, which were taken in turns. */
export interface TelemetryComparison {
  readonly plain: readonly TelemetryMeasures[];
  readonly counted: readonly TelemetryMeasures[];
}

const ACCOUNTING = '/proc/sys/net/netfilter/nf_conntrack_acct';
const SERVICES_CONNECTED = 64;

/** Measures in turns what counting costs, on one table. The network namespace must be fresh and this process's own. */
export async function compareTelemetry(options: MeasureOptions, rounds: number): Promise<TelemetryComparison> {
  prepareNetwork();
  const { cluster, directory, mode } = options;
  const server = await ApiServerProcess.start(cluster, directory);
  const traffic = await Traffic.start();
  const plain: TelemetryMeasures[] = [];
  const counted: TelemetryMeasures[] = [];
  try {
    await server.put(nodeObject());
    const file = join(directory, 'config.yaml');
    writeConfiguration({ file, kubeconfig: server.kubeconfig, mode, syncPeriod: '1h0m0s', verbosity: 2 });
    const command = options.command.replaceAll('{config}', file).replaceAll('{kubeconfig}', server.kubeconfig);
    for (let round = 0; round <= rounds; round++) {
      say(`round ${round} of ${rounds}`);
      // Who comes second finds the machine as the first left it.
      for (const isCounted of round % 2 === 0 ? [false, true] : [true, false]) {
        const measures = await measureOne(isCounted ? `${command} --service-telemetry` : command, isCounted);
        // The first round is for whatever is done once.
        if (round > 0) (isCounted ? counted : plain).push(measures);
      }
    }
  } finally {
    traffic.stop();
    await server.stop();
  }
  return { plain, counted };

  async function measureOne(line: string, isCounted: boolean): Promise<TelemetryMeasures> {
    // The process that counts leaves it on, and flows of the round before would end in this one.
    if (!isCounted) writeFileSync(ACCOUNTING, '0');
    execFileSync('conntrack', ['-F'], { stdio: 'ignore' });
    const proxy = new Proxy(line);
    try {
      await proxy.healthy();
      await proxy.syncedMs();
      await sleep(options.settleMs);
      const changeMs = await medianChange(options, server, proxy);
      const count = Math.min(SERVICES_CONNECTED, cluster.services);
      const services = Array.from({ length: count }, (_, number) => serviceAddress(number));
      const before = process.cpuUsage();
      const connectionsPerSecond = await traffic.rate(services, 80, options.connections);
      const { user, system } = process.cpuUsage(before);
      const connectionUs = (user + system) / options.connections;
      return { connectionsPerSecond, connectionUs, changeMs, residentMb: proxy.memory().resident };
    } finally {
      await proxy.stop();
    }
  }
}

/** From a change on the watch to the kernel's acknowledgement. */
async function medianChange(
  { cluster, changes }: MeasureOptions,
  server: ApiServerProcess,
  proxy: Proxy,
): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < changes; round++) {
    const acknowledged = proxy.sync(({ transactions }) => transactions > 0);
    const sentAt = await server.put(changedSlice(cluster, Math.floor(round / 2) % cluster.services, round % 2 === 1));
    times.push((await acknowledged).seenAt - sentAt);
    await sleep(5);
  }
  return median(times);
}

/** A line for each measure: without, with, and what the one is of the other, as medians and from the least to the most. */
export function printComparison({ plain, counted }: TelemetryComparison): string {
  const line = (title: string, unit: string, value: (measures: TelemetryMeasures) => number): string => {
    const [without, with_] = [plain.map(value), counted.map(value)];
    const ratios = with_.map((each, index) => each / (without[index] ?? NaN));
    const share = [median(ratios), Math.min(...ratios), Math.max(...ratios)].map((ratio) => (100 * ratio).toFixed(1));
    const [middle = '', least = '', most = ''] = share;
    return `${title}: ${digits(median(without))} ${unit}, counted ${digits(median(with_))} ${unit}, ${middle} % (${least} to ${most} %)\n`;
  };
  return [
    line('new connections', 'a second', ({ connectionsPerSecond }) => connectionsPerSecond),
    line('CPU time of one', 'µs', ({ connectionUs }) => connectionUs),
    line('one change, watch to acknowledgement', 'ms', ({ changeMs }) => changeMs),
    line('resident memory', 'MB', ({ residentMb }) => residentMb),
  ].join('');
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN;
}
