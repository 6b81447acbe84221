import type { Judgement } from './judge.js';

/** What is expected of a case that could not be carried out. */
export const AN_OUTCOME = 'an outcome';

/** What packets did. */
export interface Found {
  readonly outcome: string;
  readonly expected: string;
  readonly found: string;
}

/** Counts outcomes, and ends what was started when its case ends. */
export class Count implements Judgement {
  readonly #ends: (() => Promise<void>)[] = [];
  readonly #print: (text: string) => unknown;
  #hasFailed = false;

  constructor(
    readonly outcomes: Found[],
    print: (text: string) => unknown,
  ) {
    this.#print = print;
  }

  equal(found: string, expected: string, outcome: string): void {
    this.outcomes.push({ outcome, expected, found });
    if (found === expected) return;
    this.#hasFailed = true;
    this.#print(`not ok - ${outcome}: ${found}, expected ${expected}\n`);
  }

  /** A case that cannot be carried out has failed once. */
  async test(name: string, judged: (t: Judgement) => Promise<void>): Promise<void> {
    const inner = new Count(this.outcomes, this.#print);
    try {
      await judged(inner);
    } catch (error) {
      inner.equal(error instanceof Error ? error.message : String(error), AN_OUTCOME, name);
    } finally {
      await inner.end();
    }
  }

  async end(): Promise<void> {
    for (const end of this.#ends.toReversed()) await end();
  }

  teardown(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  passing(): boolean {
    return !this.#hasFailed;
  }

  comment(text: string): void {
    if (text !== '') this.#print(`# ${text.trimEnd().replaceAll('\n', '\n# ')}\n`);
  }
}
