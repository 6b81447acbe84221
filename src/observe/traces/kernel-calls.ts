import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context } from '@opentelemetry/api';
import type { Spans } from './spans.js';

type Call = (...parameters: readonly unknown[]) => unknown;

/** Work of which calls to the kernel are a part. */
class Work {
  /** Since when no call has been under way; null: one is. */
  private idleSince: number | null = performance.now();
  private underWay = 0;
  calls = 0;

  constructor(
    readonly parent: Context,
    /** What passes between calls, which is this program's own work; null: it is nothing of interest. */
    private readonly between: string | null,
    private readonly spans: Spans,
  ) {}

  /** @param at when a call was made. */
  began(at: number): void {
    this.calls++;
    if (this.underWay++ === 0) this.ownWork(at);
  }

  settled(): void {
    if (--this.underWay === 0) this.idleSince = performance.now();
  }

  /** What has been done since the last call. */
  ownWork(until: number): void {
    if (this.between !== null && this.idleSince !== null)
      this.spans.record(this.between, this.parent, this.idleSince, until);
    this.idleSince = null;
  }
}

/** Every call to the kernel while some work is done, and what is done between them. */
export class KernelCalls {
  private readonly work = new AsyncLocalStorage<Work>();

  /** @param writes functions of the addon that change what the kernel holds; all others that take their time read. */
  constructor(
    private readonly spans: Spans,
    private readonly writes: ReadonlySet<string>,
  ) {}

  /** Does some work, in whatever turns. @param between as in {@link Work}. */
  async during<T>(parent: Context, between: string | null, work: () => Promise<T>): Promise<T> {
    const store = new Work(parent, between, this.spans);
    const result = await this.work.run(store, work);
    // After the last call there is only a report to be made.
    if (store.calls === 0) store.ownWork(performance.now());
    return result;
  }

  /** The same functions of the addon, seen. */
  seen<Functions extends object>(functions: Functions, names: readonly (keyof Functions & string)[]): Functions {
    return Object.fromEntries(
      names.map((name) => {
        const call: Call = (...parameters) => (functions[name] as Call).apply(functions, [...parameters]);
        return [name, this.seenCall(name, call)];
      }),
    ) as Functions;
  }

  private seenCall(name: string, call: Call): Call {
    return (...parameters) => {
      const work = this.work.getStore();
      if (work === undefined) return call(...parameters);
      const startedAt = performance.now();
      const value = call(...parameters);
      if (!(value instanceof Promise)) return value;
      work.began(startedAt);
      const span = this.spans.start(this.writes.has(name) ? 'transaction' : 'read', work.parent, {
        at: startedAt,
        attributes: { 'pointsman.call': name, ...countOf(parameters[0]) },
      });
      void value.then(
        (answer: unknown) => {
          span.setAttributes(numbersOf(answer));
          this.spans.end(span);
          work.settled();
        },
        (error: unknown) => {
          this.spans.end(span, error);
          work.settled();
        },
      );
      return value;
    };
  }
}

/** How many operations a list of them has. */
function countOf(parameter: unknown): Readonly<Record<string, number>> {
  return Array.isArray(parameter) ? { 'pointsman.operations': parameter.length } : {};
}

/** What an acknowledgement says: `{ messages: 6, bytes: 252 }`. */
function numbersOf(answer: unknown): Readonly<Record<string, number>> {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return {};
  return Object.fromEntries(
    Object.entries(answer).flatMap(([name, value]): readonly [string, number][] =>
      typeof value === 'number' ? [[`pointsman.${name}`, value]] : [],
    ),
  );
}
