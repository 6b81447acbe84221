import { watch, type BigIntStats, type FSWatcher } from 'node:fs';

/**
 * Events of one directory, by whatever path it is reached: when the path comes to mean another directory the watch moves there. Events
 * are hints only; the listener looks at the files too.
 */
export class DirectoryWatch {
  private watcher: FSWatcher | null = null;
  private identity: string | null = null;
  private failed = false;

  /**
   * @param onEvent gets the name of the entry that changed, null when the system did not report it.
   * @param onFailure is called when there are no events from now on, once until there are again.
   */
  constructor(
    private readonly onEvent: (name: string | null) => void,
    private readonly onFailure: (path: string, error: unknown) => void = () => undefined,
  ) {}

  /** Watches the directory that is at `path` now. True when the watch is new, or failed: what happened before went unseen. */
  follow(path: string, stat: BigIntStats): boolean {
    // Inode numbers are used again as soon as they are free; the time of birth distinguishes two directories.
    const identity = `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
    if (identity === this.identity && this.watcher !== null) return false;
    this.close();
    try {
      this.watcher = watch(path, { persistent: false }, (_event, name) => {
        this.onEvent(name);
      });
      this.watcher.on('error', (error) => {
        this.giveUp(path, error);
      });
      this.identity = identity;
      this.failed = false;
    } catch (error) {
      this.giveUp(path, error);
    }
    return true;
  }

  /** Whether events come at present. */
  get isWatching(): boolean {
    return this.watcher !== null;
  }

  close(): void {
    this.watcher?.close();
    this.watcher = null;
    this.identity = null;
  }

  private giveUp(path: string, error: unknown): void {
    this.close();
    if (!this.failed) this.onFailure(path, error);
    this.failed = true;
  }
}
