import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NativeAddon } from './contract.js';
import { composeAddon, SUBSYSTEM_PLATFORMS, SUBSYSTEMS } from './subsystems.js';
import { traced } from './trace.js';

/** What was compiled here, and what came with the package. */
const PLACES = [
  join('build', 'Release', 'pointsman.node'),
  join('prebuilds', `${process.platform}-${process.arch}`, 'pointsman.node'),
];

/**
 * Loads the addon: the file that POINTSMAN_ADDON names, or build/Release/pointsman.node of the nearest folder above this module that has
 * one, or else the prebuilt one of this platform there. With POINTSMAN_TRACE_NATIVE=1 every call is logged to stderr.
 */
export function loadAddon(): NativeAddon {
  const path = addonPath();
  const exported: unknown = createRequire(import.meta.url)(path);
  const isTraced = process.env['POINTSMAN_TRACE_NATIVE'] === '1';
  return openAddon(exported, path, isTraced ? (line) => process.stderr.write(line) : null);
}

/**
 * The addon over what its file exports. Asked for a subsystem that the platform does not have it throws; others go on.
 *
 * @param write where calls are logged to; null: nowhere.
 */
export function openAddon(exported: unknown, path: string, write: ((line: string) => void) | null): NativeAddon {
  if (!isAddon(exported))
    throw new Error(`${path} is not pointsman's addon of this version; run \`npm run build:native\``);
  return composeAddon((name) => {
    const functions = exported[name];
    if (functions === undefined)
      throw new Error(
        `the addon has no ${name} on this platform (${process.platform}); it is for ${SUBSYSTEM_PLATFORMS[name]}`,
      );
    return write === null ? functions : traced(functions, write);
  });
}

function addonPath(): string {
  const named = process.env['POINTSMAN_ADDON'];
  if (named !== undefined && named !== '') {
    if (!existsSync(named)) throw new Error(`POINTSMAN_ADDON: there is no file ${named}`);
    return named;
  }
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    const path = PLACES.map((place) => join(folder, place)).find((each) => existsSync(each));
    if (path !== undefined) return path;
    if (folder === dirname(folder)) break;
  }
  throw new Error(
    `neither ${PLACES.join(' nor ')} is in any folder above ${start}; run \`npm run build:native\` or set POINTSMAN_ADDON`,
  );
}

/** Whether every subsystem that is there has all of its functions. */
function isAddon(value: unknown): value is Partial<NativeAddon> {
  if (typeof value !== 'object' || value === null) return false;
  const held = new Map<string, unknown>(Object.entries(value));
  const known = Object.entries(SUBSYSTEMS).filter(([name]) => held.has(name));
  return known.length > 0 && known.every(([name, functions]) => hasFunctions(held.get(name), Object.keys(functions)));
}

function hasFunctions(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const functions = new Map<string, unknown>(Object.entries(value));
  return names.every((name) => typeof functions.get(name) === 'function');
}
