import { readlinkSync, statSync, type BigIntStats } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { BEAT_MS, nextLook } from '../base/clock.js';
import { changesElsewhere, DirectoryWatch, reportsEveryChange } from '../base/directory-watch.js';
import { identityOf } from '../base/file-text.js';
import { compareConfigs, type FieldChange } from '../config/compare.js';
import type { ConfigurationPaths } from '../config/configuration-source.js';
import { ConfigError } from '../config/errors.js';
import { isDropIn, systemFiles, type ConfigFiles } from '../config/files.js';
import { loadConfig, type Loaded } from '../config/load.js';

/** What became of changed files. */
export type ConfigOutcome =
  /** They mean what is in force: a comment changed, or a refused change was taken back. */
  | ({ readonly type: 'unchanged' } & Loaded)
  /** They mean something else. */
  | ({ readonly type: 'apply'; readonly changes: readonly FieldChange[] } & Loaded)
  /** They are invalid or cannot be read. What was in force stays. */
  | { readonly type: 'refused'; readonly error: ConfigError };

interface ConfigWatchOptions {
  /** The process's own arguments, with which files are loaded again. */
  readonly argv: readonly string[];
  /** What is in force, which changed files are compared with. */
  readonly inForce: () => Loaded;
  /**
   * Called for every change of the files' content, and never during the constructor; the next is looked for once what it returns has resolved. Answers
   * whether that is dealt with: what is not, as an address was in use, is reported again, less and less often.
   */
  readonly onOutcome: (outcome: ConfigOutcome) => Promise<boolean>;
  readonly timing?: ConfigWatchTiming;
}

/** In milliseconds. */
interface ConfigWatchTiming {
  /** Between looks at files of which no event reports every change: links that lead elsewhere, network file systems. */
  readonly pollMs: number;
  /** Between looks at all others. No event reports that a directory above was replaced. */
  readonly watchedPollMs: number;
  /** How long files must have stayed the same: who writes in place empties a file first. */
  readonly settleMs: number;
  /** From what was not dealt with until it is reported again; doubles each time. */
  readonly retryMs: number;
}

const DEFAULT_TIMING: ConfigWatchTiming = {
  pollMs: BEAT_MS,
  watchedPollMs: 10 * BEAT_MS,
  settleMs: 200,
  retryMs: 1000,
};
const LONGEST_RETRY_MS = 60_000;

/** From a change event to the look, so that a burst of events costs one look. */
const EVENT_MS = 5;

/**
 * Follows --config and --config-dir: writes in place, files renamed over, the `..data` link of a ConfigMap volume. Does nothing when neither
 * was given. Touching a file or changing its mode is no change, and each content is reported once.
 */
export class ConfigWatch {
  private readonly paths: ConfigurationPaths;
  private readonly timing: ConfigWatchTiming;
  /** The node's name does not follow the system's while the process runs. */
  private readonly hostname = hostname();
  /** By path. */
  private readonly directories: ReadonlyMap<string, DirectoryWatch>;
  private timer: NodeJS.Timeout | null = null;
  /** When the timer fires, in the clock of `performance.now()`. */
  private due = 0;
  /** The state of the files when they were last seen to differ, and since when they are so. */
  private seen: { readonly fingerprint: string; readonly since: number };
  /** The state whose content was last looked at. */
  private examined: string | null = null;
  /** The content last reported or loaded at the start; null: whatever it was, it is to be looked at. */
  private content: string | null = null;
  /** When that content is reported again, and after how long; null: it was dealt with. */
  private retry: { readonly at: number; readonly afterMs: number } | null = null;
  private stopped = false;

  constructor(private readonly options: ConfigWatchOptions) {
    this.paths = options.inForce().paths;
    this.timing = options.timing ?? DEFAULT_TIMING;
    this.seen = { fingerprint: '', since: 0 };
    const { file, directory } = this.paths;
    const watched = [...(file === null ? [] : [dirname(file)]), ...(directory === null ? [] : [directory])];
    this.directories = new Map(
      watched.map((path) => {
        const onEvent = (name: string | null): void => {
          if (name === null || this.concerns(path, name)) this.lookIn(EVENT_MS);
        };
        return [path, new DirectoryWatch(onEvent)];
      }),
    );
    if (watched.length > 0) this.lookIn(0);
  }

  stop(): void {
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    for (const directory of this.directories.values()) directory.close();
  }

  /** Whether an entry of a watched directory is one of the files. A volume of a ConfigMap changes by its link `..data`. */
  private concerns(watched: string, name: string): boolean {
    const { file, directory } = this.paths;
    if (name.startsWith('..')) return true;
    return (
      // The directory itself was moved or removed.
      name === basename(watched) ||
      (watched === directory && isDropIn(name)) ||
      (file !== null && watched === dirname(file) && name === basename(file))
    );
  }

  /** Looks after this time at the latest. */
  private lookIn(ms: number): void {
    const due = performance.now() + ms;
    if (this.stopped || (this.timer !== null && this.due <= due)) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.due = due;
    // Only what else it does keeps the process running. Not before its time, or the same beat would come twice.
    this.timer = setTimeout(
      () => {
        this.timer = null;
        void this.look();
      },
      Math.ceil(ms) + 1,
    ).unref();
  }

  private async look(): Promise<void> {
    for (const [path, directory] of this.directories) {
      const stat = statOf(path);
      if (stat === null) directory.close();
      else directory.follow(path, stat);
    }
    const { settleMs } = this.timing;
    const now = performance.now();
    const fingerprint = fingerprintOf(this.paths);
    if (fingerprint !== this.seen.fingerprint) this.seen = { fingerprint, since: now };
    const settlesIn = this.seen.since + settleMs - now;
    if (fingerprint === this.examined && (this.retry === null || now < this.retry.at))
      this.lookIn(nextLook(now, this.pollMs()) - now);
    else if (settlesIn > 0) this.lookIn(Math.min(settlesIn + 1, this.timing.pollMs));
    else {
      this.examined = fingerprint;
      await this.examine();
      this.lookIn(this.pollMs());
    }
  }

  private pollMs(): number {
    return this.retry === null && this.isReported() ? this.timing.watchedPollMs : this.timing.pollMs;
  }

  /** Whether events report every change. */
  private isReported(): boolean {
    const { file, directory } = this.paths;
    const areWatched = [...this.directories].every(([path, { isWatching }]) => isWatching && reportsEveryChange(path));
    const drops = directory === null ? [] : dropInNames(directory).map((name) => join(directory, name));
    return areWatched && ![...(file === null ? [] : [file]), ...drops].some(leadsElsewhere);
  }

  private async examine(): Promise<void> {
    const texts: string[] = [];
    const outcome = this.reload(recordingFiles(texts));
    // Written to since: the next look finds another fingerprint and comes back.
    const content = JSON.stringify(texts);
    const last = content === this.content ? this.retry : null;
    if (content === this.content && last === null) return;
    const isFirst = this.content === null;
    this.content = content;
    // The files may have changed between the process's own reading and the first look, but mostly they have not.
    if (isFirst && outcome.type === 'unchanged') return;
    const isDealtWith = await this.options.onOutcome(outcome);
    const afterMs = last === null ? this.timing.retryMs : Math.min(2 * last.afterMs, LONGEST_RETRY_MS);
    this.retry = isDealtWith ? null : { at: performance.now() + afterMs, afterMs };
  }

  private reload(files: ConfigFiles): ConfigOutcome {
    try {
      const loaded = loadConfig(this.options.argv, files, () => this.hostname);
      if (!('config' in loaded)) throw new TypeError(`the arguments mean ${loaded.command}`);
      const { config, document, warnings, remarks, version, flags, paths } = loaded;
      const next: Loaded = { config, document, warnings, remarks, version, flags, paths };
      const changes = compareConfigs(this.options.inForce().config, config);
      if (changes.length === 0) return { type: 'unchanged', ...next };
      return { type: 'apply', changes, ...next };
    } catch (error) {
      if (error instanceof ConfigError) return { type: 'refused', error };
      throw error;
    }
  }
}

/** Reads files and keeps what was read, and what could not be. */
function recordingFiles(texts: string[]): ConfigFiles {
  const record = <T>(path: string, read: (path: string) => T, print: (result: T) => string): T => {
    try {
      const result = read(path);
      texts.push(path, print(result));
      return result;
    } catch (error) {
      texts.push(path, String(error));
      throw error;
    }
  };
  return {
    read: (path) => record(path, systemFiles.read, (text) => text),
    // Of the names in a directory only those count that are read.
    list: (path) => record(path, systemFiles.list, () => ''),
  };
}

/** Which state of which files there is: another one after every write, replacement or change of a link. */
function fingerprintOf({ file, directory }: ConfigurationPaths): string {
  const names = directory === null ? [] : dropInNames(directory);
  const paths = [...(file === null ? [] : [file]), ...names.map((name) => join(directory ?? '', name))];
  return JSON.stringify([names, ...paths.map(identityAt)]);
}

function dropInNames(directory: string): readonly string[] {
  try {
    return systemFiles.list(directory).filter(isDropIn).sort();
  } catch (error) {
    return [String(error)];
  }
}

function identityAt(path: string): string {
  const stat = statOf(path);
  return stat === null ? 'none' : identityOf(stat);
}

function statOf(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

/** A volume of a ConfigMap holds links that lead through its link `..data`, of which events report every change. */
function leadsElsewhere(path: string): boolean {
  try {
    return changesElsewhere(path) && !readlinkSync(path).startsWith('..data/');
  } catch {
    return true;
  }
}
