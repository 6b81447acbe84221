import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from './cached-folder.js';

/** One server that does not answer holds up apt for this long, and all of them together for UPDATE_LIMIT_MS. */
const TIMEOUT_SECONDS = 10;
const UPDATE_LIMIT_MS = 120_000;
/** Of Debian's package debian-archive-keyring. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Packages of Debian and Ubuntu as files. apt reads the machine's sources and what is installed, and writes into a folder alone: nothing is installed, and
 * an ordinary user may do it.
 */
export class Apt {
  readonly #options: readonly string[];

  /**
   * @param folder is removed by `close`.
   * @param release of Debian, from the mirror of the machine's own; null: what the machine's sources have.
   * @throws Error where there is no apt, or the sources have no answer.
   */
  constructor(
    private readonly folder: string,
    release: string | null = null,
  ) {
    const [lists, cache] = [join(folder, 'lists'), join(folder, 'cache')];
    for (const each of [join(lists, 'partial'), join(cache, 'archives', 'partial')])
      mkdirSync(each, { recursive: true });
    const settings = [
      ...[`Dir::State::Lists=${lists}`, `Dir::Cache=${cache}`, 'Acquire::Languages=none', 'Acquire::Retries=0'],
      ...['http', 'https'].map((scheme) => `Acquire::${scheme}::Timeout=${TIMEOUT_SECONDS}`),
      // Otherwise root's apt downloads as a user that may not write here, and runs what the machine wants done after an update of its own lists.
      ...['APT::Sandbox::User=root', 'APT::Update::Post-Invoke=', 'APT::Update::Post-Invoke-Success='],
      ...(release === null ? [] : sourcesOf(release, folder)),
    ];
    this.#options = settings.flatMap((setting) => ['-o', setting]);
    output('apt-get', [...this.#options, '-qq', 'update'], '/', UPDATE_LIMIT_MS);
  }

  /** The packages with all that they depend on, without what is installed here. */
  needed(names: readonly string[]): readonly string[] {
    const args = ['install', '--simulate', '--no-install-recommends', ...names];
    const simulated = output('apt-get', [...this.#options, ...args]).toString();
    // `Inst NAME [INSTALLED] (…)` would replace one that is installed, which the libraries beside it may not outlive.
    return [...simulated.matchAll(/^Inst (\S+) \(/gm)].map((found) => found[1] ?? '');
  }

  /** What `apt-cache depends` prints. */
  depends(name: string): string {
    return output('apt-cache', [...this.#options, 'depends', name]).toString();
  }

  /** Unpacks packages into a folder, which is made. */
  unpack(names: readonly string[], root: string): void {
    mkdirSync(root, { recursive: true });
    const packages = join(this.folder, 'packages');
    mkdirSync(packages);
    output('apt-get', [...this.#options, '-qq', 'download', ...names], packages);
    for (const name of readdirSync(packages)) output('dpkg-deb', ['-x', join(packages, name), root]);
    rmSync(packages, { recursive: true });
  }

  close(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** Settings by which apt reads one release alone. */
function sourcesOf(release: string, folder: string): readonly string[] {
  const mirrors = output('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI)',
    'Origin: Debian',
    'Created-By: Packages',
  ]);
  const [mirror] = mirrors.toString().split('\n');
  if (mirror === undefined || mirror === '') throw new Error("none of apt's sources is a mirror of Debian");
  const list = join(folder, 'sources.list');
  writeFileSync(list, `deb [signed-by=${KEYRING}] ${mirror} ${release} main\n`);
  return [`Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=-'];
}
