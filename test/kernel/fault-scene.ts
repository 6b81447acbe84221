import { dirname } from 'node:path';
import type { Test } from 'tap';
import { eventually, Lab } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { NODE_NAME, Proxy, type ProxyOptions } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';

export interface Scene {
  readonly lab: Lab;
  readonly proxy: Proxy;
}

/** What goes wrong, and the one command that names it. */
export interface Fault {
  readonly name: string;
  /** `npm test` has another fault of its kind. */
  readonly inFull?: true;
  /** A process of its own that is started with it; undefined: one that was well before. */
  readonly options?: ProxyOptions;
  /** Before the process starts, if it has one of its own. */
  readonly make: (scene: Scene) => Promise<unknown>;
  readonly undo?: (scene: Scene) => Promise<unknown>;
  /** A command that asks the process. */
  readonly command: readonly string[];
  /** What it says: the cause with its value, and the remedy if it is not the same. */
  readonly says: readonly RegExp[];
  /** Its exit status; absent: 1. */
  readonly exit?: 0;
}

/** A mode that looks for external changes may use a part of its time for it: on a slow machine it looks seldom. */
const PATIENCE_MS = 120_000;

/** Runs the command of a fault until it names it. */
export async function named(
  t: Test,
  { lab, proxy }: Scene,
  { command, says, exit }: Pick<Fault, 'command' | 'says' | 'exit'>,
): Promise<void> {
  let text = '';
  const isSaid = async (): Promise<true | null> => {
    const words = [PROGRAM, ...command, '--status-socket', proxy.statusSocket];
    const { status, stdout, stderr } = await lab.run('node', words);
    text = `${stdout}${stderr}`;
    return status === (exit ?? 1) && says.every((each) => each.test(text)) ? true : null;
  };
  await eventually('the fault is named', isSaid, PATIENCE_MS).catch((error: unknown) => t.fail(String(error)));
  for (const each of says) t.match(text, each);
  if (!t.passing()) t.comment(text);
}

/** Faults of a process that was well. */
export async function laterFaults(t: Test, at: Scene, faults: readonly Fault[]): Promise<void> {
  for (const fault of faults)
    await t.test(fault.name, async (t) => {
      await fault.make(at);
      await named(t, at, fault);
      await fault.undo?.(at);
    });
}

/** Faults that a process of their own is started with. */
export async function faultsFromTheStart(
  t: Test,
  objects: readonly Manifest[],
  faults: readonly Fault[],
): Promise<void> {
  for (const fault of faults)
    await t.test(fault.name, async (t) => {
      const lab = await Lab.start(t);
      const at = { lab, proxy: await Proxy.prepare(t, lab, fault.options) };
      await at.proxy.write(objects);
      await fault.make(at);
      at.proxy.launch();
      await named(t, at, fault);
    });
}

/** The folder of manifests. */
export const folderOf = ({ proxy }: Scene): string => dirname(proxy.manifestFile);

/** Starts a program without a capability, such as `net_admin`. */
export const without = (...capabilities: readonly string[]): readonly string[] => {
  const set = capabilities.map((each) => `-${each}`).join();
  return ['setpriv', '--bounding-set', set, '--inh-caps', set];
};

/** A fault with which the program ends, and says why. */
export interface EndedStart extends Pick<Fault, 'name' | 'says'> {
  readonly by?: readonly string[];
  readonly flags: readonly string[];
}

/** The start itself is the command that names the fault. */
export async function faultsThatEndStarts(t: Test, at: Scene, faults: readonly EndedStart[]): Promise<void> {
  for (const { name, by = [], flags, says } of faults)
    await t.test(name, async (t) => {
      const sources = flags.includes('--kubeconfig') ? [] : ['--manifests', folderOf(at)];
      const words = [...by, PROGRAM, ...sources, '--hostname-override', NODE_NAME, ...flags];
      const { status, stdout, stderr } = await at.lab.run('node', words);
      t.not(status, 0);
      for (const each of says) t.match(`${stdout}${stderr}`, each);
    });
}
