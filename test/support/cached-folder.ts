import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Runs a program that must succeed, and answers its output.
 *
 * @param timeout in milliseconds; 0: none.
 */
export function output(program: string, args: readonly string[], cwd = '/', timeout = 0): Buffer {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, timeout, maxBuffer: 1 << 30 });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr.toString()}`);
  return stdout;
}

/**
 * The folder `format` in a cache, which is built unless it is there. Several processes may do so at once: the first to end wins.
 *
 * @param format grows with every change to what the folder holds.
 */
export function cachedFolder(cache: string, format: string, build: (folder: string) => void): string {
  const ready = join(cache, format);
  if (existsSync(ready)) return ready;
  mkdirSync(cache, { recursive: true });
  const building = mkdtempSync(join(cache, 'building-'));
  try {
    build(building);
    if (!existsSync(ready)) renameSync(building, ready);
  } catch (error) {
    if (!existsSync(ready)) throw error;
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
  return ready;
}
