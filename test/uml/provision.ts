import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Apt } from '../support/apt.js';
import { cachedFolder, output } from '../support/cached-folder.js';

/** Grows with every change to what a cache folder holds. */
const FORMAT = '3';
/** See registers.cc. */
const REGISTERS = 'registers.so';
const PACKAGE = 'user-mode-linux';

/** A kernel that is a program, with its modules. */
export interface UserModeKernel {
  readonly program: string;
  /** A library to load into it. */
  readonly registers: string;
  /** Its folder of modules; the last part of the path is its version. */
  readonly modules: string;
}

/**
 * Debian's kernel for user mode, fetched by apt into the user's cache unless it is there (POINTSMAN_UML_CACHE). Nothing is installed.
 *
 * @throws Error that says why there is none.
 */
export function userModeKernel(): UserModeKernel {
  if (process.arch !== 'x64') throw new Error(`the kernel is made for x64, and this is ${process.arch}`);
  if (process.getuid?.() !== 0) throw new Error('root is needed, to read all files as the guest sees them');
  if (spawnSync('modprobe', ['--version']).error !== undefined)
    throw new Error("modules cannot be loaded without Debian's package kmod");
  const folder = process.env['POINTSMAN_UML_CACHE'] ?? join(homedir(), '.cache/pointsman-uml');
  const built = cachedFolder(folder, FORMAT, build);
  const root = join(built, 'root');
  const modules = join(root, 'usr/lib/uml/modules');
  const [version] = readdirSync(modules);
  if (version === undefined) throw new Error(`there are no modules in ${PACKAGE}`);
  const program = join(root, 'usr/bin/linux.uml');
  return { program, registers: join(built, REGISTERS), modules: join(modules, version) };
}

function build(folder: string): void {
  const apt = new Apt(join(folder, 'apt'));
  // It needs the C library alone.
  apt.unpack([PACKAGE], join(folder, 'root'));
  apt.close();
  const source = join(import.meta.dirname, '../../../test/uml/registers.cc');
  output('g++', [
    ...'-std=c++20 -O2 -Wall -Wextra -Werror -shared -fPIC -o'.split(' '),
    join(folder, REGISTERS),
    source,
    '-ldl',
  ]);
}
