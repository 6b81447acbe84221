import type { Log } from '../../../src/base/log.js';
import { dump, plan } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCommand } from '../load-command.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';
import type { PlanAndDump } from './difference.js';

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
