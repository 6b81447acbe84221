import type { Log } from '../../../base/log.js';
import type { FailureKind, SourceFailure } from '../failure.js';
import { noFailures } from './status.js';

/** A failure that is the ordinary course of things, not worth more than a verbose line. */
const ORDINARY: readonly FailureKind[] = ['expired'];

/** Counts failures, and speaks once when something breaks and once when it works again. */
export class Trouble {
  readonly counts = noFailures();
  private message: string | null = null;
  private kind: FailureKind | null = null;

  constructor(
    private readonly resource: string,
    private readonly log: Log,
  ) {}

  /** Kind and message; null when nothing is wrong. */
  get present(): string | null {
    return this.message;
  }

  report(failure: SourceFailure): void {
    this.counts[failure.kind]++;
    const repeated = this.kind === failure.kind;
    const fields = { resource: this.resource, kind: failure.kind };
    if (ORDINARY.includes(failure.kind)) {
      this.log.info(2, `Reading from the API server starts over: ${failure.message}`, fields);
      return;
    }
    this.kind = failure.kind;
    this.message = `${failure.kind}: ${failure.message}`;
    if (repeated) this.log.info(3, `Reading from the API server still fails: ${failure.message}`, fields);
    else this.log.error(failure, 'Reading from the API server fails, known objects stay in use', fields);
  }

  over(): void {
    if (this.message !== null) this.log.info(0, 'Reading from the API server works again', { resource: this.resource });
    this.message = null;
    this.kind = null;
  }
}
