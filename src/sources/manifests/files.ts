import { basename, dirname } from 'node:path';
import { BEAT_MS, nextLook } from '../../base/clock.js';
import { changesElsewhere, DirectoryWatch, isReachedByLinks, reportsEveryChange } from '../../base/directory-watch.js';
import { errorCode, messageOf } from '../../base/error-message.js';
import { identityOf } from '../../base/file-text.js';
import { Interner } from '../translate/intern.js';
import { Claims } from './claims.js';
import { isUnsynced, readContent, withLastGood, type Content } from './content.js';
import { readManifest, type Reading } from './file-reading.js';
import { isDanglingLink, isManifestName, look, manifestNames, pathOf, statOf, type Listing } from './location.js';
import { Pacer } from './pacer.js';
import type { Problem } from './problems.js';
import type { ManifestLocation, Dependencies } from './source.js';

/** What is remembered of a file between rounds, beside its objects. */
interface KnownFile {
  /** The reading its objects are from; null while it could not be read. */
  reading: Omit<Reading, 'text'> | null;
  /** In the clock of `performance.now()`; null while it is there. */
  missingSince: number | null;
  /** A state of the file that looks unfinished, waiting to last. */
  unconfirmed: { readonly identity: string; readonly since: number } | null;
  /** Something in it was never read: it was unreadable from the first look on. */
  unsynced: boolean;
}

const UNREAD: Readonly<KnownFile> = { reading: null, missingSince: null, unconfirmed: null, unsynced: false };

/** A poll looks at no more links than that; where a directory has more, it looks at everything. */
const MAX_LINKS = 32;
/** After this many events between two looks some may be lost: the kernel queues 16,384 (inotify(7), `max_queued_events`). */
const MAX_EVENTS = 4096;
/** Where events report every change of what is there, polls find only that a directory above was replaced. So they are as much rarer. */
const WATCHED_POLLS = 10;

/**
 * A file, or the manifests in a directory (not in those below it). Events show where to look. A poll looks at what events do not report: the
 * location itself and links, and everything where the file system is not a local one. Now and then everything is looked at anywhere.
 */
export class FileLocation implements ManifestLocation {
  private readonly names = new Interner();
  private readonly claims = new Claims();
  private readonly known = new Map<string, KnownFile>();
  private readonly watch: DirectoryWatch;
  private readonly stopped = new AbortController();
  private complete = false;
  private type: Listing['type'] | null = null;
  /** Names to look at; null: everything. */
  private wanted: Set<string> | null = null;
  /** The file system and the path are such that events report every change but those of links. */
  private reported = false;
  /** Names whose changes events do not report. */
  private readonly links = new Set<string>();
  /** Events since the last look. */
  private events = 0;
  /** When to poll, and when to look at everything, in the clock of `performance.now()`. */
  private nextPoll = 0;
  private nextFullLook = 0;
  /** Polls wait so long after a look at everything. */
  private nextRest = 0;

  constructor(
    private readonly path: string,
    private readonly dependencies: Dependencies,
  ) {
    const { log } = dependencies;
    this.watch = new DirectoryWatch(
      (name) => {
        this.onEvent(name);
      },
      (directory, error) => {
        log.info(1, 'Manifests: no change events, only polling', { path: directory, reason: String(error) });
      },
    );
  }

  get pollMs(): number {
    return Math.max(0, this.nextPoll - performance.now());
  }

  async round(): Promise<void> {
    const began = performance.now();
    const isFull = this.wanted === null || began >= this.nextFullLook;
    const wanted = isFull ? null : this.wanted;
    this.wanted = new Set();
    this.events = 0;
    if (began >= this.nextPoll) {
      this.nextPoll = nextLook(began, this.dependencies.timing.filePollMs * WATCHED_POLLS);
      for (const name of this.links) wanted?.add(name);
    }
    try {
      const listing = look(this.path, this.type);
      const rewatched = this.watch.follow(listing.directory, listing.directoryStat);
      await this.lookAt(listing, rewatched ? null : wanted);
      this.dependencies.problems.report(`${this.path} (location)`, []);
      if (isFull || rewatched) this.nextFullLook = this.afterFullLook(listing, began, performance.now());
      if (!this.reported || this.links.size > 0) this.pollSoon(began);
    } catch (error) {
      if (this.stopped.signal.aborted) return;
      // Nothing is unloaded: a directory that is gone for a moment is no evidence about its files.
      this.watch.close();
      this.wanted = null;
      this.pollSoon(began);
      const problem = this.problem(this.path, `cannot be read: ${messageOf(error)}`);
      this.dependencies.problems.report(`${this.path} (location)`, [problem]);
    }
  }

  /** When everything is looked at again, at a poll. Where events report what changes, that takes at most a five-thousandth of the time. */
  private afterFullLook({ directory }: Listing, began: number, ended: number): number {
    this.nextRest = restAfter(began, ended);
    const isReported = this.watch.isWatching && reportsEveryChange(directory);
    this.reported = isReported && !isReachedByLinks(directory);
    if (isReported && this.links.size <= MAX_LINKS) return ended + (ended - began) * 5000;
    this.pollSoon(began);
    return this.nextPoll;
  }

  /** Events do not report everything: polls at the usual period, but not so often that looks take all the time. */
  private pollSoon(began: number): void {
    const soon = Math.max(nextLook(began, this.dependencies.timing.filePollMs), this.nextRest);
    this.nextPoll = Math.min(this.nextPoll, soon);
  }

  close(): void {
    this.stopped.abort();
    this.watch.close();
  }

  /** By which events report the directory itself. */
  private get watchedName(): string {
    return basename(this.type === 'file' ? dirname(this.path) : this.path);
  }

  private onEvent(name: string | null): void {
    const { timer, timing } = this.dependencies;
    this.events++;
    if (this.events > MAX_EVENTS) this.wanted = null;
    // A volume of a ConfigMap changes by its link `..data` being replaced.
    if (name === null || name.startsWith('..')) this.wanted = null;
    else if (this.type === 'file' ? name === basename(this.path) : isManifestName(name)) this.wanted?.add(name);
    // The directory itself was moved or removed, or has other attributes.
    else if (name !== this.watchedName) return;
    timer.ring(timing.settleMs);
  }

  private async lookAt(listing: Listing, wanted: ReadonlySet<string> | null): Promise<void> {
    const pacer = new Pacer(this.stopped.signal);
    const names = wanted ?? new Set([...(await manifestNames(this.path, listing)), ...this.known.keys()]);
    for (const name of names) {
      await this.refresh(name, pathOf(listing, name), pacer);
      if (pacer.due()) await pacer.rest();
    }
    this.commit(listing);
  }

  private commit(listing: Listing): void {
    // A location that is one file counts as read once the file was.
    const unread = this.type === null && [...this.known.values()].every((file) => file.reading === null);
    if (unread && listing.type === 'file') return;
    this.type = listing.type;
    this.dependencies.problems.report(`${this.path} (duplicates)`, this.claims.duplicates());
    const changes = this.claims.takeChanges();
    this.dependencies.writer.unsynced([...this.known.values()].some(({ unsynced }) => unsynced));
    if (changes.length > 0) this.dependencies.writer.apply(changes);
    if (this.complete) return;
    this.complete = true;
    this.dependencies.log.info(0, 'Manifests loaded', { location: this.path, objects: changes.length });
    this.dependencies.writer.complete();
  }

  private async refresh(name: string, path: string, pacer: Pacer): Promise<void> {
    const known = this.known.get(name);
    try {
      const stat = statOf(path);
      if (stat === null && (await isDanglingLink(path))) {
        this.links.add(name);
        throw new Error('is a link to nothing');
      }
      if (stat?.isFile() !== true) {
        this.forget(name, path, known);
        return;
      }
      if (known !== undefined) known.missingSince = null;
      if (known?.reading?.settled === true && known.reading.identity === identityOf(stat)) return;
      if (changesElsewhere(path)) this.links.add(name);
      else this.links.delete(name);
      const reading = await readManifest(path, stat, this.dependencies.timing.graceMs);
      await this.take(name, path, reading, pacer);
    } catch (error) {
      if (this.stopped.signal.aborted) throw error;
      if (isMissing(error)) {
        this.forget(name, path, known);
        return;
      }
      if (known === undefined) this.known.set(name, { ...UNREAD, unsynced: true });
      else known.reading = null;
      this.dependencies.problems.report(path, [this.problem(path, `cannot be read: ${messageOf(error)}`)]);
    }
  }

  private async take(name: string, path: string, { text, ...reading }: Reading, pacer: Pacer): Promise<void> {
    const file = this.known.get(name) ?? { ...UNREAD };
    const neverRead = file.reading === null;
    this.known.set(name, file);
    if (!reading.settled) this.lookAgain(name);
    const sameBytes = reading.digest !== null && reading.digest === file.reading?.digest;
    if (sameBytes && file.unconfirmed === null) {
      file.reading = reading;
      return;
    }
    const content = await readContent(text, path, this.names, pacer);
    if (this.mustWait(name, file, reading, content)) return;
    file.reading = reading;
    file.unconfirmed = null;
    const objects = withLastGood(this.claims.objectsOf(name), content);
    file.unsynced = isUnsynced(content, objects, neverRead || file.unsynced);
    this.claims.replace(name, objects);
    this.dependencies.problems.report(path, content.problems);
  }

  /**
   * Whether a reading that looks half-written, or lacks objects the file had, must first prove to last. A program that writes a file in place empties it
   * first, and the part written so far may look whole. A file put in place by renaming is complete at once.
   */
  private mustWait(name: string, file: KnownFile, reading: Omit<Reading, 'text'>, content: Content): boolean {
    if (file.reading?.inode !== reading.inode) return false;
    const next = withLastGood(this.claims.objectsOf(name), content);
    const lost = [...this.claims.objectsOf(name).keys()].some((key) => !next.has(key));
    if (!lost && !(content.unidentified && !reading.settled)) return false;
    const now = performance.now();
    if (file.unconfirmed?.identity !== reading.identity) file.unconfirmed = { identity: reading.identity, since: now };
    if (now - file.unconfirmed.since >= this.dependencies.timing.graceMs) return false;
    file.reading = { ...file.reading, settled: false };
    this.lookAgain(name);
    return true;
  }

  private forget(name: string, path: string, known: KnownFile | undefined): void {
    if (known === undefined) return;
    const now = performance.now();
    known.missingSince ??= now;
    if (now - known.missingSince < this.dependencies.timing.graceMs) {
      this.lookAgain(name);
      return;
    }
    this.known.delete(name);
    this.links.delete(name);
    this.claims.replace(name, new Map());
    this.dependencies.problems.report(path, []);
    this.dependencies.log.info(0, 'Manifest is gone, and so are its objects', { file: path });
  }

  /** Asks for another look at a file when its state may have become final. */
  private lookAgain(name: string): void {
    const { timer, timing } = this.dependencies;
    this.wanted?.add(name);
    timer.ring(timing.graceMs + 1);
  }

  private problem(file: string, message: string): Problem {
    return { severity: 'error', file, document: null, object: null, message };
  }
}

/** Looking takes at most a twentieth of the time, but happens often enough for changes to be seen within a second. */
function restAfter(began: number, ended: number): number {
  return Math.min(began + (ended - began) * 20, ended + BEAT_MS);
}

/** The file went between two looks at it. */
function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT';
}
