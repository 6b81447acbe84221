import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from '../support/lab/agent.js';
import { output } from '../support/cached-folder.js';

const SOURCES = projectFile('test/wine/stand-in');
const FLAGS = [
  '-std=c++20',
  '-O1',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-static',
  '-D_WIN32_WINNT=0x0A00',
  '-DNTDDI_VERSION=0x0A000006',
];

/** Builds the DLLs that stand in for HNS; their paths. */
export function buildStandIns(compilers: string): readonly string[] {
  const folder = projectFile('build-windows');
  mkdirSync(folder, { recursive: true });
  return ['computenetwork', 'vmcompute'].map((name) => {
    const dll = join(folder, `${name}.dll`);
    const argv = [...FLAGS, '-shared', '-s', '-Wl,--export-all-symbols', '-o', dll, join(SOURCES, `${name}.cc`)];
    output(join(compilers, 'x86_64-w64-mingw32-g++-posix'), [...argv, '-lole32', '-lws2_32']);
    return dll;
  });
}
