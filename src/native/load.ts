import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDON_FUNCTIONS } from './addon-functions.js';
import type { NativeAddon } from './contract.js';
import { traced } from './trace.js';

const BUILT = join('build', 'Release', 'pointsman.node');

/**
 * Loads the addon: the file that POINTSMAN_ADDON names, or build/Release/pointsman.node of the nearest folder above this module that has
 * one. With POINTSMAN_TRACE_NATIVE=1 every call is logged to stderr.
 */
export function loadAddon(): NativeAddon {
  const path = addonPath();
  const addon: unknown = createRequire(import.meta.url)(path);
  if (!isAddon(addon))
    throw new Error(`${path} is not pointsman's addon of this version; run \`npm run build:native\``);
  return process.env['POINTSMAN_TRACE_NATIVE'] === '1' ? traced(addon, (line) => process.stderr.write(line)) : addon;
}

function addonPath(): string {
  const named = process.env['POINTSMAN_ADDON'];
  if (named !== undefined && named !== '') {
    if (!existsSync(named)) throw new Error(`POINTSMAN_ADDON: there is no file ${named}`);
    return named;
  }
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    const path = join(folder, BUILT);
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) break;
  }
  throw new Error(`no ${BUILT} in any folder above ${start}; run \`npm run build:native\` or set POINTSMAN_ADDON`);
}

function isAddon(value: unknown): value is NativeAddon {
  if (typeof value !== 'object' || value === null) return false;
  const functions = new Map<string, unknown>(Object.entries(value));
  return ADDON_FUNCTIONS.every((name) => typeof functions.get(name) === 'function');
}
