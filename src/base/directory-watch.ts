import { lstatSync, realpathSync, statfsSync, watch, type BigIntStats, type FSWatcher } from 'node:fs';
import { resolve } from 'node:path';

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

/** Whether a file may change without an event of its directory: as a link it leads elsewhere, or it has another name elsewhere. */
export function changesElsewhere(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.nlink > 1 || stat.isSymbolicLink());
}

/** Whether the path leads through links: it then comes to mean another directory without an event of that. */
export function isReachedByLinks(directory: string): boolean {
  try {
    return realpathSync(directory) !== resolve(directory);
  } catch {
    return true;
  }
}

/**
 * File systems whose files change through this kernel alone, so that inotify reports every change (inotify(7), "Limitations and caveats").
 * By `f_type` of statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, F2FS, ZFS, bcachefs.
 */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x858458f6, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e,
]);

/** Whether events report every change in a directory. For an unknown file system they might not. */
export function reportsEveryChange(directory: string): boolean {
  try {
    return LOCAL_FILE_SYSTEMS.has(statfsSync(directory).type);
  } catch {
    return false;
  }
}
