import { constants, openSync, readdirSync, statSync } from 'node:fs';
import { readStreamWithin, readTextFileSync, textOf } from '../base/bounded-file.js';
import { MAX_CONFIG_BYTES } from './yaml.js';

/** Where configuration files are read from. Both functions throw the system's error, or that a file is too large or no UTF-8. */
export interface ConfigFiles {
  /** A file's text. */
  readonly read: (path: string) => string;
  /** The names in a directory. */
  readonly list: (directory: string) => readonly string[];
}

export const systemFiles: ConfigFiles = {
  read: (path) => fromPipes.get(path)?.() ?? readTextFileSync(path, MAX_CONFIG_BYTES),
  list: (directory) => readdirSync(directory),
};

/** What pipes had, or throws, by path: a pipe can be read once, and followed configuration is read again. */
const fromPipes = new Map<string, () => string>();

/**
 * Reads a configuration file that is a pipe, which {@link systemFiles} has from then on. Its writer may take any time: meanwhile signals are handled.
 *
 * @param argv arguments without the program's own path.
 */
export async function readConfigPipe(argv: readonly string[]): Promise<void> {
  const path = argv
    .flatMap((text, index) => {
      if (text === '--config') return argv[index + 1] ?? [];
      return text.startsWith('--config=') ? text.slice('--config='.length) : [];
    })
    .at(-1);
  if (path === undefined || statSync(path, { throwIfNoEntry: false })?.isFIFO() !== true) return;
  const { Socket } = await import('node:net');
  // Without this flag to open it waits for a writer (fifo(7)).
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const text = textOf(await readStreamWithin(new Socket({ fd, readable: true, writable: false }), MAX_CONFIG_BYTES));
    fromPipes.set(path, () => text);
  } catch (error) {
    fromPipes.set(path, () => {
      throw error;
    });
  }
}

/** Whether a name in --config-dir is that of a drop-in file. */
export function isDropIn(name: string): boolean {
  return !name.startsWith('.') && /\.(?:conf|ya?ml|json)$/.test(name);
}
