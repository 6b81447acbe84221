// system.mjs ARCH FOLDER: gathers in FOLDER what the image for an architecture is made from: Node and Debian's packages, exactly those of pins.json. Nothing is
// installed and nothing of it is run. A FOLDER that is there already stays as it is. Downloads are kept in POINTSMAN_RELEASE_CACHE, if that is set.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PINS_FILE = fileURLToPath(new URL('pins.json', import.meta.url));
/** What the image has programs and libraries of; the pins are these and what they depend on. */
const WANTED = ['coreutils', 'iptables', 'kmod', 'libstdc++6'];
const SNAPSHOT = 'http://snapshot.debian.org/archive';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

export function readPins() {
  return JSON.parse(readFileSync(PINS_FILE, 'utf8'));
}

/** apt as if on an empty machine of an architecture, with its files in a folder of its own. */
class Apt {
  #options;

  /** @param sources a sources list in place of the machine's; null: the machine's. */
  constructor(arch, folder, sources = null) {
    for (const each of ['lists/partial', 'archives/partial']) mkdirSync(join(folder, each), { recursive: true });
    writeFileSync(join(folder, 'status'), '');
    if (sources !== null) writeFileSync(join(folder, 'sources.list'), sources);
    const settings = [
      ...[`APT::Architecture=${arch}`, `APT::Architectures=${arch}`, 'APT::Sandbox::User=root'],
      ...[
        `Dir::State=${folder}`,
        `Dir::State::status=${folder}/status`,
        `Dir::Cache=${folder}`,
        'Acquire::Languages=none',
      ],
      ...(sources === null ? [] : [`Dir::Etc::SourceList=${folder}/sources.list`, 'Dir::Etc::SourceParts=-']),
    ];
    this.#options = settings.flatMap((each) => ['-o', each]);
    this.run('apt-get', ['-qq', 'update']);
  }

  run(program, words, cwd) {
    return execFileSync(program, [...this.#options, ...words], { cwd, encoding: 'utf8', maxBuffer: 1 << 28 });
  }
}

/** Names, versions and digests of the packages that WANTED takes today, of the release that apt is set to here. */
export function debianPins(arch) {
  return within((folder) => {
    const apt = new Apt(arch, folder);
    const simulated = apt.run('apt-get', ['install', '--simulate', '--no-install-recommends', ...WANTED]);
    const names = [...simulated.matchAll(/^Inst (\S+) \((\S+) /gm)].map(([, name, version]) => [name, version]);
    return names
      .map(([name, version]) => {
        const shown = apt.run('apt-cache', ['show', `${name}=${version}`]);
        return { name, version, sha256: /^SHA256: ([0-9a-f]{64})$/m.exec(shown)[1] };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}

function within(use) {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-system-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const digestOf = (algorithm, path) => createHash(algorithm).update(readFileSync(path)).digest('hex');

/**
 * Files by their digests: from the cache, or from what `fetch` writes into a folder. Whatever has another digest is refused.
 *
 * @param pins each with `file`, a name of its own, and the digest.
 * @returns their paths, in this order.
 */
function pinned(pins, algorithm, fetch, folder) {
  const cache = process.env.POINTSMAN_RELEASE_CACHE ?? join(folder, 'cache');
  mkdirSync(cache, { recursive: true });
  const place = (pin) => join(cache, pin[algorithm]);
  const missing = pins.filter((pin) => !existsSync(place(pin)));
  if (missing.length > 0) {
    const downloads = join(folder, 'downloads');
    mkdirSync(downloads);
    fetch(missing, downloads);
    const found = new Map(readdirSync(downloads).map((name) => [digestOf(algorithm, join(downloads, name)), name]));
    for (const pin of missing) {
      const name = found.get(pin[algorithm]);
      if (name === undefined) throw new Error(`${pin.name} ${pin.version}: what was fetched has another ${algorithm}`);
      // Two may do so at once, and a cache may be on another file system.
      const made = `${place(pin)}.${process.pid}`;
      copyFileSync(join(downloads, name), made);
      renameSync(made, place(pin));
    }
    rmSync(downloads, { recursive: true });
  }
  return pins.map(place);
}

/** From the machine's mirror while it has them, then from Debian's archive of all that it ever had. */
function fetchDebian(arch, { release, snapshot }) {
  return (pins, downloads) =>
    within((folder) => {
      const suites = [
        ['debian', release],
        ['debian', `${release}-updates`],
        ['debian-security', `${release}-security`],
      ];
      const archive = suites.map(
        ([name, suite]) =>
          `deb [check-valid-until=no signed-by=${KEYRING}] ${SNAPSHOT}/${name}/${snapshot} ${suite} main\n`,
      );
      const words = ['-qq', 'download', ...pins.map(({ name, version }) => `${name}=${version}`)];
      try {
        new Apt(arch, join(folder, 'now')).run('apt-get', words, downloads);
      } catch {
        new Apt(arch, join(folder, 'then'), archive.join('')).run('apt-get', words, downloads);
      }
    });
}

/** The path of the pinned Node for an architecture, and its version. */
export function pinnedNode(arch, folder) {
  const { version, ...packages } = readPins().node;
  const pin = { ...packages[arch], version };
  const fetch = (pins, downloads) => {
    for (const { name } of pins)
      execFileSync('npm', ['pack', '--silent', `${name}@${version}`, '--pack-destination', downloads], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
  };
  const [archive] = pinned([pin], 'sha512', fetch, folder);
  execFileSync('tar', ['-xzf', archive, '-C', folder, 'package/bin/node']);
  return { path: join(folder, 'package/bin/node'), version };
}

function gather(arch, made) {
  const pins = readPins();
  if (pins.debian[arch] === undefined) throw new Error(`no image is made for "${arch}"`);
  for (const each of ['usr/bin', 'usr/sbin', 'usr/lib', 'usr/local/bin', 'var/lib/dpkg/info'])
    mkdirSync(join(made, each), { recursive: true });
  for (const each of ['bin', 'sbin', 'lib']) symlinkSync(`usr/${each}`, join(made, each));
  const work = join(made, 'work');
  mkdirSync(work);
  let status = '';
  for (const archive of pinned(pins.debian[arch], 'sha256', fetchDebian(arch, pins.debian), work)) {
    const field = (...names) => execFileSync('dpkg-deb', ['-f', archive, ...names], { encoding: 'utf8' });
    const files = execFileSync('dpkg-deb', ['--fsys-tarfile', archive], { maxBuffer: 1 << 30 });
    // Debian's folders /bin, /sbin and /lib are links, of which not all packages know.
    execFileSync('tar', ['-x', '--keep-directory-symlink', '-C', made], { input: files });
    const list = execFileSync('tar', ['-t'], { input: files, encoding: 'utf8', maxBuffer: 1 << 28 });
    const name = `${field('Package').trim()}:${field('Architecture').trim()}`;
    writeFileSync(join(made, `var/lib/dpkg/info/${name}.list`), list.replaceAll(/^\./gm, '').replaceAll(/\/$/gm, ''));
    status += `Status: install ok installed\n${field()}\n`;
  }
  writeFileSync(join(made, 'var/lib/dpkg/status'), status);
  const node = pinnedNode(arch, work);
  renameSync(node.path, join(made, 'usr/local/bin/node'));
  writeFileSync(join(made, 'node-version'), `${node.version}\n`);
  rmSync(work, { recursive: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , arch, folder] = process.argv;
  if (!existsSync(folder)) {
    mkdirSync(dirname(folder), { recursive: true });
    const made = mkdtempSync(`${folder}.new-`);
    try {
      gather(arch, made);
      renameSync(made, folder);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  }
}
