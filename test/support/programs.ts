import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/base/error-message.js';
import { Apt } from './apt.js';
import { cachedFolder, output } from './cached-folder.js';

interface Program {
  /** Debian's. */
  readonly package: string;
  /** The files by which it is there. */
  readonly files: readonly string[];
  /** What each of them is asked, to see that it runs. */
  readonly question: string;
}

/** What tests may need of a machine beyond Node, a C++ compiler, make and python3. */
const PROGRAMS = {
  conntrack: { package: 'conntrack', files: ['conntrack'], question: '-V' },
  curl: { package: 'curl', files: ['curl'], question: '-V' },
  fish: { package: 'fish', files: ['fish'], question: '--version' },
  ip: { package: 'iproute2', files: ['ip'], question: '-V' },
  ipset: { package: 'ipset', files: ['ipset'], question: 'help' },
  iptables: { package: 'iptables', files: iptablesFiles(), question: '-V' },
  nft: { package: 'nftables', files: ['nft'], question: '-V' },
  openssl: { package: 'openssl', files: ['openssl'], question: 'version' },
  zsh: { package: 'zsh', files: ['zsh'], question: '--version' },
} as const satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof PROGRAMS;

export const PROGRAM_NAMES = Object.keys(PROGRAMS) as readonly ProgramName[];
/** An ordinary user's PATH lacks them in Debian. */
const ADMINISTRATORS_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
/** Grows with every change to what a cache folder holds. */
const FORMAT = '3';
/** Names of protocols are in /etc/protocols, a file of another package: ipset takes none where that is missing, and nft prints numbers. */
const PROTOCOLS_FILE = '/etc/protocols';
const PROTOCOLS_LIBRARY = 'protocols.so';
const PROTOCOLS_SOURCE = `
#include <cstring>
#include <netdb.h>
namespace {
char* no_aliases[] = {nullptr};
protoent known[] = {{const_cast<char*>("icmp"), no_aliases, 1}, {const_cast<char*>("tcp"), no_aliases, 6}, {const_cast<char*>("udp"), no_aliases, 17},
                    {const_cast<char*>("ipv6-icmp"), no_aliases, 58}, {const_cast<char*>("sctp"), no_aliases, 132}};
int copy(protoent* found, protoent* to, protoent** result) {
  if (found != nullptr) *to = *found;
  *result = found == nullptr ? nullptr : to;
  return 0;
}
}
extern "C" {
protoent* getprotobyname(const char* name) {
  for (protoent& each : known) if (std::strcmp(each.p_name, name) == 0) return &each;
  return nullptr;
}
protoent* getprotobynumber(int number) {
  for (protoent& each : known) if (each.p_proto == number) return &each;
  return nullptr;
}
int getprotobyname_r(const char* name, protoent* to, char*, size_t, protoent** result) { return copy(getprotobyname(name), to, result); }
int getprotobynumber_r(int number, protoent* to, char*, size_t, protoent** result) { return copy(getprotobynumber(number), to, result); }
}
`;

function iptablesFiles(): readonly string[] {
  return ['iptables', 'ip6tables'].flatMap((program) =>
    ['nft', 'legacy'].flatMap((flavor) => ['', '-save', '-restore'].map((action) => `${program}-${flavor}${action}`)),
  );
}

/** Which programs there are, and where. */
export interface FoundPrograms {
  /** To be the PATH of tests, and of what they start. */
  readonly path: string;
  /** Of those that are missing, why. */
  readonly missing: ReadonlyMap<ProgramName, string>;
  /** One line on what was fetched; null: nothing was. */
  readonly note: string | null;
}

/**
 * The programs that tests start: those of the machine, and what it lacks as Debian's packages, which apt fetches into a folder of the user's. Nothing is
 * installed.
 *
 * @param cache such as `~/.cache/pointsman-programs`; null: the machine's alone.
 */
export function findPrograms(cache: string | null): FoundPrograms {
  const folders = (process.env['PATH'] ?? '').split(':');
  const own = [...folders, ...ADMINISTRATORS_FOLDERS.filter((folder) => !folders.includes(folder))];
  const lacked = absent(own);
  if (lacked.length === 0 || cache === null) return found(own, 'it is not installed', null);
  try {
    const folder = fetched(cache, lacked);
    const names = lacked.map((name) => PROGRAMS[name].package).join(', ');
    return found([...own, join(folder, 'bin')], 'the fetched one does not run', `programs of ${names}: ${folder}`);
  } catch (error) {
    return found(own, `it is not installed, and apt cannot fetch it (${complaint(messageOf(error))})`, null);
  }
}

/** The user's folder for what is fetched; null where POINTSMAN_PROGRAMS_CACHE is empty. */
export function programsCache(): string | null {
  const named = process.env['POINTSMAN_PROGRAMS_CACHE'] ?? join(homedir(), '.cache/pointsman-programs');
  return named === '' ? null : named;
}

function found(folders: readonly string[], reason: string, note: string | null): FoundPrograms {
  return { path: folders.join(':'), missing: new Map(absent(folders).map((name) => [name, reason])), note };
}

function absent(folders: readonly string[]): readonly ProgramName[] {
  return PROGRAM_NAMES.filter(
    (name) => !PROGRAMS[name].files.every((file) => folders.some((each) => isProgram(each, file))),
  );
}

function isProgram(folder: string, file: string): boolean {
  try {
    accessSync(join(folder, file), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What a machine has decides over what its packages need, so a folder is for one release and one list. */
function fetched(cache: string, names: readonly ProgramName[]): string {
  const release = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown';
  const format = [FORMAT, release, process.arch, ...names].join('-');
  return cachedFolder(cache, format, (building) => {
    const apt = new Apt(join(building, 'apt'));
    const root = join(building, 'root');
    apt.unpack(apt.needed(names.map((name) => PROGRAMS[name].package)), root);
    apt.close();
    // fish finds its files beside itself only if etc is there too.
    symlinkSync('../etc', join(root, 'usr/etc'));
    writeLaunchers(building, join(cache, format), names);
  });
}

/**
 * Scripts in `bin` by which the unpacked programs find their libraries and extensions, whatever environment they are started with. Those that do not run here
 * get none.
 *
 * @param place where the folder is going to be.
 */
function writeLaunchers(building: string, place: string, names: readonly ProgramName[]): void {
  mkdirSync(join(building, 'bin'));
  if (!existsSync(PROTOCOLS_FILE)) {
    const [source, library] = [join(building, 'protocols.cc'), join(building, PROTOCOLS_LIBRARY)];
    writeFileSync(source, PROTOCOLS_SOURCE);
    output('g++', ['-shared', '-fPIC', '-o', library, source]);
  }
  const launcher = (root: string, path: string): string =>
    `#!/bin/sh\n${environment(root)}\nexec ${quoted(join(root, path))} "$@"\n`;
  const files = names.flatMap((name) =>
    PROGRAMS[name].files.map((file) => ({ file, question: PROGRAMS[name].question })),
  );
  for (const { file, question } of files) {
    const path = ['usr/sbin', 'usr/bin', 'sbin', 'bin']
      .map((folder) => join(folder, file))
      .find((each) => existsSync(join(building, 'root', each)));
    if (path === undefined) continue;
    const trial = spawnSync('sh', ['-c', launcher(join(building, 'root'), path), file, question]);
    if (trial.status !== 0) continue;
    const script = launcher(join(building, 'root'), path).replaceAll(building, place);
    writeFileSync(join(building, 'bin', file), script, { mode: 0o755 });
  }
}

function environment(root: string): string {
  const libraries = ['usr/lib', 'lib'].flatMap((lib) => [join(root, lib), ...multiarch(root, lib)]);
  const first = (paths: readonly string[]): string | undefined => paths.find((path) => existsSync(path));
  const variables = {
    LD_LIBRARY_PATH: libraries.join(':'),
    XTABLES_LIBDIR: first(libraries.map((folder) => join(folder, 'xtables'))),
    OPENSSL_CONF: first([join(root, 'etc/ssl/openssl.cnf')]),
    // zsh takes its modules' folder from no variable of its own.
    ZSH_MODULES: first(libraries.flatMap((folder) => childrenOf(join(folder, 'zsh')))),
    FPATH: zshFunctions(root),
    LD_PRELOAD: first([join(root, '..', PROTOCOLS_LIBRARY)]),
  };
  return Object.entries(variables)
    .filter(([, value]) => value !== undefined)
    .map(([name, value = '']) => `export ${name}=${quoted(value)}`)
    .join('\n');
}

/** The folders of zsh's functions for completion. */
function zshFunctions(root: string): string | undefined {
  const folder = join(root, 'usr/share/zsh/functions/Completion');
  if (!existsSync(folder)) return undefined;
  return [folder, ...['Base', 'Unix', 'Zsh'].map((name) => join(folder, name))].join(':');
}

function childrenOf(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

/** Folders of libraries that Debian names by the machine's architecture, such as `usr/lib/x86_64-linux-gnu`. */
function multiarch(root: string, lib: string): readonly string[] {
  const folder = join(root, lib);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.includes('-linux-gnu'))
    .map((name) => join(folder, name));
}

/** A word that a shell takes as it is. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** apt's own words of what went wrong, without the command. */
function complaint(text: string): string {
  return /^(?:.*: )?(E: .*)$/m.exec(text)?.[1] ?? text.split('\n')[0] ?? '';
}
