import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { printableText } from '../../../src/base/printable.js';

/** So many rows are written before others have their turn: about a millisecond. */
const AT_ONCE = 128;

/**
 * An answer with rows that are made while it is written. Rows of a whole answer outlive the young generation, which is small: to collect them took as long
 * as to make them.
 */
export class RowsAnswer {
  /** @param rows read once; others have their turn meanwhile. */
  constructor(
    private readonly others: Readonly<Record<string, unknown>>,
    private readonly rows: Iterable<unknown>,
  ) {}

  /** JSON that may be shown on a terminal. */
  stream(): Readable {
    return Readable.from(this.texts());
  }

  private async *texts(): AsyncGenerator<string, void, void> {
    let text = `${JSON.stringify(this.others).slice(0, -1)},"rows":[`;
    let some: unknown[] = [];
    let between = '';
    for (const row of this.rows) {
      if (some.push(row) < AT_ONCE) continue;
      yield text + between + listed(some);
      [text, some, between] = ['', [], ','];
      await turn();
    }
    yield `${text}${some.length === 0 ? '' : between + listed(some)}]}\n`;
  }
}

/** Without the brackets around them. */
function listed(rows: readonly unknown[]): string {
  return printableText(JSON.stringify(rows).slice(1, -1));
}
