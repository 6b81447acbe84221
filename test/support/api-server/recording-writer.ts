import { refOf, type Row } from '../../../src/state/rows.js';
import type { SourceWriter, StateChange, Writer } from '../../../src/state/writer.js';

/** What one source wrote: every commit, and what they leave. */
export class RecordedSource implements SourceWriter {
  readonly commits: (readonly StateChange[])[] = [];
  readonly rows = new Map<string, Row>();
  /** When the changes of each commit had come, as the source said. */
  readonly receivedAt: (number | null)[] = [];
  completed = 0;

  apply(changes: readonly StateChange[], receivedAt: number | null = null): void {
    this.commits.push(changes);
    this.receivedAt.push(receivedAt);
    for (const change of changes) {
      const { namespace, name } = change.type === 'upsert' ? refOf(change.row) : change.ref;
      if (change.type === 'upsert') this.rows.set(`${namespace}/${name}`, change.row);
      else this.rows.delete(`${namespace}/${name}`);
    }
  }

  complete(): void {
    this.completed++;
  }

  unsynced(): void {
    throw new Error('this source is read as a whole');
  }

  /** `+name` and `-name` per change, for each commit since the last call; commits without a change are left out. */
  takeCommits(): readonly string[] {
    return this.commits
      .splice(0)
      .map((changes) =>
        changes
          .map((change) => (change.type === 'upsert' ? `+${refOf(change.row).name}` : `-${change.ref.name}`))
          .join(' '),
      )
      .filter((text) => text !== '');
  }
}

export class RecordingWriter implements Writer {
  readonly sources = new Map<string, RecordedSource>();

  register(name: string): SourceWriter {
    const source = new RecordedSource();
    this.sources.set(name, source);
    return source;
  }

  source(name: string): RecordedSource {
    const source = this.sources.get(name);
    if (source === undefined) throw new Error(`no source ${name}`);
    return source;
  }
}
