import { FAILURE_KINDS, type FailureKind } from '../failure.js';

/** How a resource's reader is doing; counters only grow. */
export interface ResourceStatus {
  /** `services`, `endpointslices`, `nodes`, `servicecidrs`. */
  readonly resource: string;
  /** All that was there at the start has been read, once at least. */
  readonly synced: boolean;
  /** A watch is open. Always false for servicecidrs, which are listed. */
  readonly watching: boolean;
  /** The resource version the state stands at; empty before the first sync. */
  readonly version: string;
  readonly objects: number;
  /** Milliseconds since the last event, bookmark or list; null when there was none. */
  readonly sinceLastEventMs: number | null;
  readonly events: Readonly<Record<EventName, number>>;
  /** Complete lists and initial events. */
  readonly lists: number;
  /** Requests sent for watches. */
  readonly watches: number;
  readonly failures: Readonly<Record<FailureKind, number>>;
  /** What is wrong at present; null when nothing is. */
  readonly trouble: string | null;
  /** Objects, as they came, that were not what the encoding allows. */
  readonly undecodable: number;
  /** Objects, as they came, with a field that may not be as it is. */
  readonly invalid: number;
}

export type EventName = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export function noFailures(): Record<FailureKind, number> {
  const counts: Partial<Record<FailureKind, number>> = {};
  for (const kind of FAILURE_KINDS) counts[kind] = 0;
  return counts as Record<FailureKind, number>;
}

export function noEvents(): Record<EventName, number> {
  return { ADDED: 0, MODIFIED: 0, DELETED: 0, BOOKMARK: 0, ERROR: 0 };
}
