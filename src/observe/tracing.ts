import type { SourceTracing } from '../base/tracing.js';
import type { CycleObserver } from './cycle-observer.js';

/** Spans that ended, by what became of them: sent, or dropped as the collector did not take them in time. */
export interface SpanCounter {
  spansEnded(result: 'exported' | 'dropped', count: number): void;
}

type Observed =
  'committed' | 'runBegan' | 'planned' | 'syncBegan' | 'acknowledged' | 'syncEnded' | 'runEnded' | 'during';

/** All of it, of one process. */
export interface ProcessTracing extends Required<Pick<CycleObserver, Observed>>, SourceTracing {
  /** From now on spans are counted. */
  countBy(counter: SpanCounter): void;
  /** What is in force from the next run on. */
  setMode(mode: string): void;
}
