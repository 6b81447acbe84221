// What `pointsman plan` and `pointsman dump` print, for one command line after the other: a process that answers many times costs a tenth of two
// that answer once. Each line of standard input is the arguments as JSON; each line of standard output is a Contents or { error }.
import { createInterface } from 'node:readline';
import type { Log } from '../../../src/base/log.js';
import { dump, plan } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadConfig } from '../../../src/config/load.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';

/** What is to be and what is, in the same terms. */
export interface Contents {
  readonly plan: string;
  readonly dump: string;
  /** What was wrong with the manifests. */
  readonly errors: readonly string[];
}

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function contents(argv: readonly string[]): Promise<Contents> {
  const loaded = loadConfig(['dump', ...argv], systemFiles);
  if (loaded.command !== 'dump') throw new Error(`not for dump: ${argv.join(' ')}`);
  const [planned, held] = await Promise.all([
    plan(loaded.config),
    dump(loaded.config, { host: LINUX_HOST, addon: loadAddon() }, SILENT),
  ]);
  return { plan: planned.text, dump: held.text, errors: planned.errors };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await contents(JSON.parse(line) as readonly string[]).catch((error: unknown) => ({
    error: String(error),
  }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
