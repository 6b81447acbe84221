/** An object that a watch told of. */
export interface HeardObject {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly kind: string;
  /** Empty for what has none. */
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
}

/**
 * What sources tell whoever follows changes on their way. Where nobody does it is null, and then nothing is made for it either: no source allocates
 * anything to be told.
 */
export interface SourceTracing {
  /** Commits what comes of what was heard. */
  committing(heard: readonly HeardObject[], commit: () => void): void;
  /** All of a resource has been read and committed. @param since when that began, on performance.now's clock. */
  listed(resource: string, objects: number, since: number): void;
  /** A request to an API server begins. @param target path and query. */
  request(method: string, host: string, target: string): RequestTrace;
}

/** One request on its way. */
export interface RequestTrace {
  /** Tell the server of which trace it is a part. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers came, or no answer (null). */
  answered(status: number | null): void;
}
