import { about, COMPLETION, HELP, MAN } from './about.js';
import { CHECK } from './check.js';
import type { CommandSpec } from './command.js';
import type { Command, OwnCommand, Terminal } from './definition.js';
import { NODES } from './nodes.js';
import { DIFF, DUMP, PLAN, RENDER } from './plan-commands.js';
import { BUGREPORT, EXPLAIN, SELFTEST, SERVICES, STATUS, TOP, TRACE, UI } from './process-commands.js';
import { VERSION, version } from './version.js';
import { WEBHOOK } from './webhook.js';

/** Every command, what asks a process first. */
export const COMMANDS: readonly Command[] = [
  STATUS,
  SERVICES,
  EXPLAIN,
  TRACE,
  SELFTEST,
  TOP,
  BUGREPORT,
  own(
    NODES,
    async (argv, terminal) => await (await import('../../packages/nodes/src/command.js')).nodes(argv, terminal),
  ),
  DIFF,
  PLAN,
  DUMP,
  RENDER,
  UI,
  own(
    CHECK,
    async (argv, terminal) =>
      await print(await (await import('../../packages/check/src/command.js')).check(argv), terminal),
  ),
  own(
    WEBHOOK,
    async (argv, { handleSignals }) =>
      await (await import('../../packages/webhook/src/command.js')).webhook(argv, handleSignals),
  ),
  ...[HELP, COMPLETION, MAN].map((spec) =>
    own(spec, async (argv, terminal) => await print(about(spec, argv, COMMANDS), terminal)),
  ),
  own(VERSION, async (argv, terminal) => await print(version(argv), terminal)),
];
export const PROXY_COMMANDS = COMMANDS.filter((command) => command.needs !== null);
export const COMMAND_NAMES = COMMANDS.map(({ name }) => name);

export function commandNamed(name: string): Command | null {
  return COMMANDS.find((command) => command.name === name) ?? null;
}

function own(spec: CommandSpec, run: OwnCommand['run']): OwnCommand {
  return { ...spec, needs: null, run };
}

/** Prints what a command has answered. Resolves to its exit status. */
async function print(
  { stdout, stderr, status }: { readonly stdout: string; readonly stderr: string; readonly status: number },
  { write, complain }: Terminal,
): Promise<number> {
  if (stderr !== '') complain(stderr.replace(/\n$/, ''));
  await write(stdout);
  return status;
}
