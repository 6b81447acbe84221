import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';

interface FollowedOptions<T> {
  /** With dashes, as messages name it. */
  readonly flag: string;
  readonly read: () => Promise<readonly string[]>;
  /** Throws an Error when the texts cannot be used. */
  readonly make: (texts: readonly string[]) => T | Promise<T>;
  /** Called with what something else has taken the place of, and at the end. */
  readonly dispose?: (made: T) => void;
  readonly log: Log;
  readonly observer: AccessObserver;
}

/** What is made of files, and made anew when they change; where they cannot be used, what was made last stays. */
export class Followed<T> {
  private held: { readonly texts: readonly string[]; readonly made: T } | null = null;
  /** Files that cannot be used, and why; reported once. */
  private problem = '';

  constructor(private readonly options: FollowedOptions<T>) {}

  /** Available after {@link open}. */
  get current(): T {
    if (this.held === null) throw new TypeError(`${this.options.flag} has not been read`);
    return this.held.made;
  }

  /** Null: it has not been read, or could never be used. */
  get latest(): T | null {
    return this.held?.made ?? null;
  }

  /** @throws Error that names the flag. */
  async open(): Promise<void> {
    try {
      await this.take();
    } catch (error) {
      throw new Error(`${this.options.flag}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Looks at the files again; whether there is another {@link current}. */
  async check(): Promise<boolean> {
    const { flag, log, observer } = this.options;
    try {
      const changed = await this.take();
      if (changed) {
        observer.reloaded(flag, 'applied');
        log.info(0, 'changed files are used from now on', { flag });
      } else if (this.problem !== '') log.info(0, 'files can be used again', { flag });
      this.problem = '';
      return changed;
    } catch (error) {
      const problem = messageOf(error);
      if (problem === this.problem) return false;
      this.problem = problem;
      observer.reloaded(flag, 'refused');
      log.error(error, 'changed files cannot be used, the last ones stay in use', { flag });
      return false;
    }
  }

  close(): void {
    if (this.held !== null) this.options.dispose?.(this.held.made);
  }

  private async take(): Promise<boolean> {
    const texts = await this.options.read();
    if (this.held?.texts.join('\0') === texts.join('\0')) return false;
    const former = this.held;
    this.held = { texts, made: await this.options.make(texts) };
    if (former !== null) this.options.dispose?.(former.made);
    return true;
  }
}
