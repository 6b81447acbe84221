/** An object that a watch reported. */
export interface TracedObject {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly kind: string;
  /** Empty for what has none. */
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
}

/** What sources report to the observer of changes. Without an observer it is null, and no source allocates anything for it. */
export interface SourceTracing {
  /** Commits the result of what was received. */
  committing(received: readonly TracedObject[], commit: () => void): void;
  /** All of a resource has been read and committed. @param since when that began, on performance.now's clock. */
  listed(resource: string, objects: number, since: number): void;
  /** A request to an API server begins. @param target path and query. */
  request(method: string, host: string, target: string): RequestTrace;
}

/** One request on its way. */
export interface RequestTrace {
  /** Sends the server the trace that the request is part of. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers came, or no answer (null). */
  answered(status: number | null): void;
}
