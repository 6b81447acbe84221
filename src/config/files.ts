import { readdirSync } from 'node:fs';
import { readTextFileSync } from '../base/bounded-file.js';
import { MAX_CONFIG_BYTES } from './yaml.js';

/** Where configuration files are read from. Both functions throw the system's error, or that a file is too large or no UTF-8. */
export interface ConfigFiles {
  /** A file's text. */
  readonly read: (path: string) => string;
  /** The names in a directory. */
  readonly list: (directory: string) => readonly string[];
}

export const systemFiles: ConfigFiles = {
  read: (path) => readTextFileSync(path, MAX_CONFIG_BYTES),
  list: (directory) => readdirSync(directory),
};

/** Whether a name in --config-dir is that of a drop-in file. */
export function isDropIn(name: string): boolean {
  return !name.startsWith('.') && /\.(?:conf|ya?ml|json)$/.test(name);
}
