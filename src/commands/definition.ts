import type { handleSignals } from '../cli/signals.js';
import type { Loaded } from '../config/load.js';
import { FLAGS } from '../config/flag-table.js';
import type { Flag } from '../config/flag.js';
import type { Machine } from '../control/mode.js';
import type { Host } from '../host/host.js';
import type { Logger } from '../observe/log.js';
import type { CommandSpec } from './command.js';
import type { Given } from './given.js';

/** The one definition of a command. What it runs is loaded by import(), when it runs. */
export type Command = OwnCommand | ProxyCommand;

/** A command with only flags of its own: the first word of the command line. */
export interface OwnCommand extends CommandSpec {
  readonly needs: null;
  /** Runs it with the arguments after its name. Resolves to the exit status. */
  readonly run: (argv: readonly string[], terminal: Terminal) => Promise<number>;
}

/** A command that is configured as the proxy is, or asks the running one. */
export interface ProxyCommand extends CommandSpec {
  /** A process that runs, objects as manifests, a node's configuration, or a process where no manifests are given. */
  readonly needs: 'process' | 'manifests' | 'configuration' | 'process or manifests';
  readonly operand: 'required' | 'optional' | 'several' | 'none';
  /**
   * Reads what was given. Resolves to what runs then, and answers the exit status.
   *
   * @throws ConfigError
   */
  readonly prepare: (given: Given, loaded: Loaded) => (parts: CommandParts) => Promise<number>;
}

/** The terminal of a command. */
export interface Terminal {
  readonly write: (text: string) => Promise<void>;
  readonly complain: (text: string) => void;
  /** Whether what is written can be written over. */
  readonly isTerminal: boolean;
  readonly handleSignals: typeof handleSignals;
}

/** The parts of the program that commands need. */
export interface CommandParts extends Terminal {
  readonly log: Logger;
  readonly machine: () => Promise<Machine>;
  readonly host: () => Promise<Host>;
}

/** Flags that have the proxy do something else, as a command does, and one of Windows' services. */
const NOT_OF_COMMANDS: readonly string[] = ['cleanup', 'init-only', 'version', 'write-config-to', 'windows-service'];
const OF_PROCESS = ['status-socket', 'v', 'vmodule', 'logging-format'];
/** Flags worth a line in the help of commands that are configured as the proxy is. */
const USUAL = ['config', 'manifests', 'kubeconfig', 'hostname-override', 'mode', 'cluster-cidr'];

/** Completes the definition of a command. The names that it reads are those of its flags. */
export function proxyCommand<const F extends readonly Flag[]>(
  definition: Omit<ProxyCommand, 'flags' | 'proxyFlags' | 'prepare'> & {
    readonly flags: F;
    readonly prepare: (given: Given<F[number]['name']>, loaded: Loaded) => ReturnType<ProxyCommand['prepare']>;
  },
): ProxyCommand {
  const { needs } = definition;
  const taken = FLAGS.filter(({ name }) =>
    needs === 'process' ? OF_PROCESS.includes(name) : !NOT_OF_COMMANDS.includes(name),
  );
  const shown = [...(needs === 'process' ? [] : USUAL), ...(needs.startsWith('process') ? ['status-socket'] : [])];
  return { ...definition, proxyFlags: { taken, shown } };
}

/** Flags of a command, in alphabetical order. */
export function flagsOf({ flags, proxyFlags }: CommandSpec): readonly Flag[] {
  return [...(proxyFlags?.taken ?? []), ...flags].sort((a, b) => (a.name < b.name ? -1 : 1));
}
