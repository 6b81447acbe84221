import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServerProcess } from './api-server.js';
import { changedSlice, nodeObject, serviceAddress } from './cluster.js';
import { writeConfiguration } from './configuration.js';
import { kernelMemory, type MeasureOptions } from './measure.js';
import { Proxy } from './proxy.js';
import { writeHostile } from './hostile.js';
import { digits } from './report.js';
import { say } from './say.js';
import { median } from './statistics.js';
import { prepareNetwork, Traffic } from './traffic.js';

/** What is compared with a process that has no such flag, in words for the flag. Hostile Services are in a file beside the API server's. */
export const COMPARED = {
  telemetry: { flag: '--service-telemetry', word: 'counted' },
  retry: {
    flag: '--connect-retry=0 --dns-retry=0 --reset-removed-endpoints=false',
    word: 'without retry and resets',
  },
  tables: { flag: '--balance=hash=address,port', word: 'by tables' },
  hostile: { flag: '--manifests={hostile}', word: 'beside hostile Services' },
} as const;

export type Compared = keyof typeof COMPARED;

/** What is the same with the flag and without. */
export interface ComparedMeasures {
  readonly connectionsPerSecond: number;
  /** CPU time of one connection in microseconds, of both ends and of the kernel on their behalf: it is more telling than the rate where others are at work. */
  readonly connectionUs: number;
  /** From a change on the watch to the kernel's acknowledgement: the median, in milliseconds. */
  readonly changeMs: number;
  /** Resident, in MB. */
  readonly residentMb: number;
  /** What the kernel frees with the ruleset, for each Service port, in KB. */
  readonly kernelKb: number;
}

/** As many results of each kind as rounds, which were taken in turns. */
export interface Comparison {
  readonly compared: Compared;
  readonly plain: readonly ComparedMeasures[];
  readonly flagged: readonly ComparedMeasures[];
}

const ACCOUNTING = '/proc/sys/net/netfilter/nf_conntrack_acct';
const SERVICES_CONNECTED = 64;

/** Measures in turns what a flag costs. The network namespace must be fresh and this process's own. */
export async function compare(options: MeasureOptions, compared: Compared, rounds: number): Promise<Comparison> {
  prepareNetwork();
  const { cluster, directory, mode } = options;
  const server = await ApiServerProcess.start(cluster, directory);
  const traffic = await Traffic.start();
  const plain: ComparedMeasures[] = [];
  const flagged: ComparedMeasures[] = [];
  try {
    await server.put(nodeObject());
    const file = join(directory, 'config.yaml');
    const hostile = join(directory, 'hostile.json');
    writeHostile(hostile);
    writeConfiguration({ file, kubeconfig: server.kubeconfig, mode, syncPeriod: '1h0m0s', verbosity: 2 });
    const command = options.command.replaceAll('{config}', file).replaceAll('{kubeconfig}', server.kubeconfig);
    for (let round = 0; round <= rounds; round++) {
      say(`round ${round} of ${rounds}`);
      // The second one finds the machine as the first left it.
      for (const isFlagged of round % 2 === 0 ? [false, true] : [true, false]) {
        const measures = await measureOne(
          isFlagged ? `${command} ${COMPARED[compared].flag.replace('{hostile}', hostile)}` : command,
        );
        // The first round is for whatever is done once.
        if (round > 0) (isFlagged ? flagged : plain).push(measures);
      }
    }
  } finally {
    traffic.stop();
    await server.stop();
  }
  return { compared, plain, flagged };

  async function measureOne(line: string): Promise<ComparedMeasures> {
    // A process that counts leaves it on, and flows of the round before would end in this one.
    writeFileSync(ACCOUNTING, '0');
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
      const residentMb = proxy.memory().resident;
      await proxy.stop();
      const kernelKb = ((await kernelMemory(mode)) * 1024) / cluster.services;
      return { connectionsPerSecond, connectionUs, changeMs, residentMb, kernelKb };
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
export function printComparison({ compared, plain, flagged }: Comparison): string {
  const line = (title: string, unit: string, value: (measures: ComparedMeasures) => number): string => {
    const [without, with_] = [plain.map(value), flagged.map(value)];
    const ratios = with_.map((each, index) => each / (without[index] ?? NaN));
    const share = [median(ratios), Math.min(...ratios), Math.max(...ratios)].map((ratio) => (100 * ratio).toFixed(1));
    const [middle = '', least = '', most = ''] = share;
    return `${title}: ${digits(median(without))} ${unit}, ${COMPARED[compared].word} ${digits(median(with_))} ${unit}, ${middle} % (${least} to ${most} %)\n`;
  };
  return [
    line('new connections', 'a second', ({ connectionsPerSecond }) => connectionsPerSecond),
    line('CPU time of one', 'µs', ({ connectionUs }) => connectionUs),
    line('one change, watch to acknowledgement', 'ms', ({ changeMs }) => changeMs),
    line('resident memory', 'MB', ({ residentMb }) => residentMb),
    line('kernel memory of a Service port', 'KB', ({ kernelKb }) => kernelKb),
  ].join('');
}
