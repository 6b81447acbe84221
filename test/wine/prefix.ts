import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Provision } from './provision.js';

/** Wine's own words for what one of its machines needs; a folder of its own is its registry and its disk. */
export function wineEnvironment(machine: Provision, prefix: string): Readonly<Record<string, string>> {
  return {
    WINEPREFIX: prefix,
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
    // Neither .NET nor a browser, which Wine would look for, nor entries in menus.
    WINEDLLOVERRIDES: 'mscoree,mshtml=;winemenubuilder.exe=',
    WINELOADER: machine.wine,
    WINESERVER: machine.wineserver,
    LD_LIBRARY_PATH: machine.libraries,
    LC_ALL: 'C.UTF-8',
    HOME: prefix,
    DISPLAY: '',
    NODE_OPTIONS: '',
    POINTSMAN_WINE_NODE: machine.node,
  };
}

/** How long the service manager waits for a service that starts; where every core is busy, Node takes longer than the ten seconds that Wine has it wait. */
const SERVICE_START_MS = 150_000;
const CONTROL = 'HKLM\\System\\CurrentControlSet\\Control';

/** A machine of its own for a run: Windows 10, with the DLLs among its own. */
export function makePrefix(machine: Provision, dlls: readonly string[]): string {
  const prefix = mkdtempSync(join(machine.cache, 'prefix-'));
  const env = { PATH: '/usr/bin:/bin', ...wineEnvironment(machine, prefix) };
  const wine = (...args: readonly string[]): void => {
    spawnSync(machine.wine, args, { env, stdio: 'ignore', timeout: 120_000, killSignal: 'SIGKILL' });
  };
  wine('wineboot', '-i');
  // It counts as Windows 7 otherwise, on which Node does not run.
  wine('reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f');
  wine('reg', 'add', CONTROL, '/v', 'ServicesPipeTimeout', '/d', String(SERVICE_START_MS), '/f');
  // The service manager reads that when it starts.
  stop(machine, env);
  const system = join(prefix, 'drive_c/windows/system32');
  if (!existsSync(system)) {
    removePrefix(machine, prefix);
    throw new Error('Wine made no machine');
  }
  for (const dll of dlls) copyFileSync(dll, join(system, basename(dll)));
  return prefix;
}

/** Ends what still runs there, and removes it. */
export function removePrefix(machine: Provision, prefix: string): void {
  const env = { PATH: '/usr/bin:/bin', ...wineEnvironment(machine, prefix) };
  stop(machine, env);
  rmSync(prefix, { recursive: true, force: true, maxRetries: 3 });
}

function stop({ wineserver }: Provision, env: NodeJS.ProcessEnv): void {
  for (const flag of ['-k', '-w']) spawnSync(wineserver, [flag], { env, stdio: 'ignore', timeout: 30_000 });
}
