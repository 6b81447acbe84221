/** What goes wrong with one request. */
export type Fault =
  /** An error answer. `retryAfter` in seconds. */
  | {
      readonly type: 'status';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfter?: number;
      /** A body that is no Status. */
      readonly body?: string;
    }
  /** The connection is closed without an answer. */
  | { readonly type: 'reset' }
  /** No answer comes, and the connection stays. */
  | { readonly type: 'hang' }
  /** The answer stops after so many bytes, and the connection stays. */
  | { readonly type: 'stall'; readonly bytes: number }
  /** The answer ends after so many bytes: properly, or with the connection. */
  | { readonly type: 'truncate'; readonly bytes: number; readonly reset: boolean }
  /** Bytes from an offset on are replaced. */
  | { readonly type: 'corrupt'; readonly bytes: number; readonly replacement: string }
  /** The answer comes in pieces of so many bytes, one per millisecond. */
  | { readonly type: 'slow'; readonly bytes: number }
  /** A watch that is answered well and then brings an ERROR event. */
  | { readonly type: 'errorEvent'; readonly code: number; readonly reason: string; readonly message: string };

export type Operation = 'list' | 'watch' | 'watchlist' | 'get' | 'write';

export interface FaultRule {
  readonly fault: Fault;
  /** Null: every resource. */
  readonly resource?: string | null;
  readonly operation?: Operation | null;
  /** How many requests meet it; all when not given. */
  readonly times?: number;
}

/** Faults waiting for requests. */
export class Faults {
  private rules: { readonly rule: FaultRule; left: number }[] = [];

  add(rule: FaultRule): void {
    this.rules.push({ rule, left: rule.times ?? Number.POSITIVE_INFINITY });
  }

  clear(): void {
    this.rules = [];
  }

  /** The fault that a request meets; null for none. */
  take(resource: string, operation: Operation): Fault | null {
    const entry = this.rules.find(
      ({ rule, left }) =>
        left > 0 && (rule.resource ?? resource) === resource && (rule.operation ?? operation) === operation,
    );
    if (entry === undefined) return null;
    entry.left--;
    return entry.rule.fault;
  }
}
