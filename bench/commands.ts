import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ApiServerProcess } from './api-server.js';
import { nodeObject, SERVICE_PORT, serviceAddress } from './cluster.js';
import { writeConfiguration } from './configuration.js';
import type { MeasureOptions } from './measure.js';
import { digits } from './report.js';
import { Proxy } from './proxy.js';
import { median } from './statistics.js';
import { prepareNetwork } from './traffic.js';

/** What one command costs the process that it asks. */
export interface CommandCost {
  readonly command: string;
  /** CPU time of the process's main thread in milliseconds, of each run. */
  readonly mainThreadMs: readonly number[];
}

const MAIN = resolve('dist/main.js');
/** What the process still does after a command: it collects garbage. */
const PAUSE_MS = 200;

const COMMANDS: readonly string[] = [
  'status',
  'services',
  'services --problems',
  'services --limit 0',
  'services -o wide --limit 0',
  `explain ${serviceAddress(0)}:${SERVICE_PORT}`,
  'bugreport',
];

/** Measures the commands that ask the running process. The network namespace must be fresh and this process's own. */
export async function measureCommands(options: MeasureOptions, runs: number): Promise<readonly CommandCost[]> {
  prepareNetwork();
  const { cluster, directory, mode } = options;
  const server = await ApiServerProcess.start(cluster, directory);
  const socket = join(directory, 'status.sock');
  try {
    await server.put(nodeObject());
    const file = join(directory, 'config.yaml');
    writeConfiguration({ file, kubeconfig: server.kubeconfig, mode, syncPeriod: '1h0m0s', verbosity: 0 });
    const line = options.command.replaceAll('{config}', file).replaceAll('{kubeconfig}', server.kubeconfig);
    // The last of a flag counts.
    const proxy = new Proxy(`${line} --status-socket ${socket}`);
    try {
      await proxy.healthy();
      await proxy.syncedMs();
      await sleep(options.settleMs);
      const costs: CommandCost[] = [];
      for (const command of COMMANDS) {
        const mainThreadMs: number[] = [];
        // The first run is for whatever is done once.
        for (let run = 0; run <= runs; run++) {
          const before = proxy.mainThreadMs();
          await runCommand([...command.split(' '), '--status-socket', socket], directory);
          await sleep(PAUSE_MS);
          if (run > 0) mainThreadMs.push(proxy.mainThreadMs() - before);
        }
        costs.push({ command, mainThreadMs });
      }
      return costs;
    } finally {
      await proxy.stop();
    }
  } finally {
    await server.stop();
  }
}

/** Exit status 1 is an answer as well: not all is well, or a part could not be read. */
async function runCommand(argv: readonly string[], cwd: string): Promise<void> {
  await promisify(execFile)(process.execPath, [MAIN, ...argv], { cwd, maxBuffer: 1 << 28 }).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== 1) throw error;
  });
}

/** A line for each command: the median, and from the least to the most. */
export function printCosts(costs: readonly CommandCost[]): string {
  return costs
    .map(({ command, mainThreadMs }) => {
      const [least, middle, most] = [Math.min(...mainThreadMs), median(mainThreadMs), Math.max(...mainThreadMs)];
      return `${command}: ${digits(middle)} ms of the main thread (${digits(least)} to ${digits(most)})\n`;
    })
    .join('');
}
