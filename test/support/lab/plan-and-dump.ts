import type { Log } from '../../../src/base/log.js';
import { dump, plan } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCompiler } from '../fake-kernel/compiler.js';
import { loadCommand } from '../load-command.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import type { NativeAddon } from '../../../src/native/contract.js';
import { loadAddon } from '../../../src/native/load.js';
import type { PlanAndDump } from './difference.js';

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Each dump compiles all rules that should be there: those of the dump before it, most often. */
const addon = loadAddon();
const remembering: NativeAddon = Object.create(addon, {
  nftables: { value: { ...addon.nftables, ...loadCompiler() } },
}) as NativeAddon;

/** What `pointsman plan` and `pointsman dump` print, by the arguments of a command line without the command. */
export async function planAndDump(argv: readonly string[]): Promise<PlanAndDump> {
  const loaded = loadCommand(['dump', ...argv], systemFiles);
  if (loaded.command !== 'dump') throw new Error(`not for dump: ${argv.join(' ')}`);
  const [planned, held] = await Promise.all([
    plan(loaded.config),
    dump(loaded.config, { host: LINUX_HOST, addon: remembering }, SILENT),
  ]);
  return { plan: planned.text, dump: held.text, errors: planned.errors };
}
