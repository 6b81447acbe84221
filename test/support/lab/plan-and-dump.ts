import type { Log } from '../../../src/base/log.js';
import { dump, plan } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCommand } from '../load-command.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';

/** What is to be and what is, in the same terms. */
export interface PlanAndDump {
  readonly plan: string;
  readonly dump: string;
  /** What was wrong with the manifests. */
  readonly errors: readonly string[];
}

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What `pointsman plan` and `pointsman dump` print, by the arguments of a command line without the command. */
export async function planAndDump(argv: readonly string[]): Promise<PlanAndDump> {
  const loaded = loadCommand(['dump', ...argv], systemFiles);
  if (loaded.command !== 'dump') throw new Error(`not for dump: ${argv.join(' ')}`);
  const [planned, held] = await Promise.all([
    plan(loaded.config),
    dump(loaded.config, { host: LINUX_HOST, addon: loadAddon() }, SILENT),
  ]);
  return { plan: planned.text, dump: held.text, errors: planned.errors };
}

/** Nothing but what stays in the kernel for LINGER_MS. Each look takes some 50 ms of processor time. */
export const LINGERING = /^(?:\+ IPv[46] kernel \S+ is needed by nothing\n)+$/;

/** Lines that only one of both sorted texts has. */
export function lineDifference({ plan, dump }: PlanAndDump): string {
  const [planned, held] = [new Set(plan.split('\n')), new Set(dump.split('\n'))];
  const missing = [...planned].filter((line) => !held.has(line)).map((line) => `- ${line}\n`);
  const surplus = [...held].filter((line) => !planned.has(line)).map((line) => `+ ${line}\n`);
  return [...missing, ...surplus].join('');
}
