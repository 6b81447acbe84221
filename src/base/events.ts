/** An object of the cluster, as events name it. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty for what belongs to no namespace. */
  readonly namespace: string;
  readonly name: string;
}

/** Something a user should see beside an object of theirs. */
export interface ProxyEvent {
  readonly type: 'Normal' | 'Warning';
  /** Why, as one word that others may filter by; at most 128 characters, as is `action`. */
  readonly reason: string;
  /** What was being done. */
  readonly action: string;
  readonly regarding: EventSubject;
  /** A second object that has to do with it; null when there is none. */
  readonly related: EventSubject | null;
  /** For people; may be empty. */
  readonly note: string;
  /**
   * What every node of the cluster finds alike, beside reason and object: there is one event of it, whichever node is first. Absent: it is this node's own.
   */
  readonly finding?: string;
}

/**
 * Takes events for users of the cluster. Returns at once, never throws, and promises nothing: an event that cannot be delivered is dropped, so the caller
 * logs it too. The same event again, within some minutes, counts as the one that is known.
 */
export interface EventRecorder {
  record(event: ProxyEvent): void;
}

/** Whether an event may be sent, for which it then counts. */
export type EventLimit = (event: ProxyEvent) => boolean;

/** For a process without a cluster. */
export const NO_EVENTS: EventRecorder = { record: () => undefined };

export function nodeSubject(name: string): EventSubject {
  return { apiVersion: 'v1', kind: 'Node', namespace: '', name };
}

/** @param service `namespace/name`, or `namespace/name:port` for one of its ports. */
export function serviceSubject(service: string): EventSubject {
  const [namespace = '', rest = ''] = service.split('/');
  const [name = ''] = rest.split(':');
  return { apiVersion: 'v1', kind: 'Service', namespace, name };
}
