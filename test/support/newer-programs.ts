import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Apt } from './apt.js';
import { cachedFolder } from './cached-folder.js';
import { programsCache } from './programs.js';

/** A Debian release with nft 1.1.3 and iptables 1.8.11. */
const RELEASE = 'trixie';
/** Grows with every change to what the cache holds. */
const FORMAT = '1';
const PACKAGES = ['nftables', 'libnftables1', 'libnftnl11', 'libjansson4', 'libedit2', 'libgmp10', 'libtinfo6'];
const PACKAGES_OF_IPTABLES = ['iptables', 'libxtables12', 'libip4tc2', 'libip6tc2'];
const SHARED_PACKAGES = ['libc6', 'libmnl0', 'libbsd0', 'libmd0', 'libnetfilter-conntrack3', 'libnfnetlink0'];
const MULTI = 'xtables-nft-multi';

/**
 * A folder with the nft and the iptables-nft programs of a newer Debian release, which apt fetches with their libraries and installs nothing; null where it
 * cannot, for example offline.
 */
export function newerPrograms(): string | null {
  const cache = programsCache();
  if (cache === null) return null;
  try {
    const folder = cachedFolder(cache, `${FORMAT}-${RELEASE}-${process.arch}`, (building) => {
      const apt = new Apt(join(building, 'apt'), RELEASE);
      apt.unpack([...PACKAGES, ...PACKAGES_OF_IPTABLES, ...SHARED_PACKAGES], join(building, 'root'));
      apt.close();
      mkdirSync(join(building, 'bin'));
      for (const [name, program] of programs()) {
        const path = join(building, 'bin', name);
        writeFileSync(path, launcher(join(building, 'root'), program, name), { mode: 0o755 });
      }
    });
    return join(folder, 'bin');
  } catch {
    return null;
  }
}

function programs(): readonly (readonly [name: string, program: string])[] {
  const families = ['iptables', 'ip6tables'].flatMap((family) =>
    ['', '-save', '-restore'].map((action) => [`${family}-nft${action}`, MULTI] as const),
  );
  return [['nft', 'nft'], ...families];
}

/** The release's own C library needs its own loader. The script finds both beside itself, wherever the folder is. */
function launcher(root: string, program: string, name: string): string {
  const lib = join(root, 'usr/lib');
  const multiarch = readdirSync(lib).find((each) => existsSync(join(lib, each, 'libc.so.6'))) ?? '';
  const loader = readdirSync(join(lib, multiarch)).find((each) => each.startsWith('ld-linux')) ?? '';
  const libraries = `"$root"/usr/lib/${multiarch}`;
  return [
    '#!/bin/sh',
    'root=$(dirname "$(readlink -f "$0")")/../root',
    `export XTABLES_LIBDIR=${libraries}/xtables`,
    `exec ${libraries}/${loader} --argv0 ${name} --library-path ${libraries} "$root"/usr/sbin/${program} "$@"`,
    '',
  ].join('\n');
}
