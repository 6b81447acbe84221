import { readdirSync, readFileSync } from 'node:fs';

/** Where configuration files are read from. Both functions throw the system's error. */
export interface ConfigFiles {
  /** A file's text. */
  readonly read: (path: string) => string;
  /** The names in a directory. */
  readonly list: (directory: string) => readonly string[];
}

export const systemFiles: ConfigFiles = {
  read: (path) => readFileSync(path, 'utf8'),
  list: (directory) => readdirSync(directory),
};

/** Whether a name in --config-dir is that of a drop-in file. */
export function isDropIn(name: string): boolean {
  return !name.startsWith('.') && /\.(?:conf|ya?ml|json)$/.test(name);
}
