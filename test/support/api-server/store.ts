import type { ApiObject } from '../api-objects.js';
import {
  keyOf,
  metadataOf,
  nameOf,
  resourceOfKind,
  SERVED,
  type ObjectName,
  type ServedResource,
} from './resources.js';

/** One change, with the object before it, as selectors must be asked about both. */
export interface StoredEvent {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: ApiObject;
  readonly previous: ApiObject | null;
}

export type StoreListener = (resource: ServedResource, event: StoredEvent) => void;

const FIRST_VERSION = 100;

/** Objects under one sequence of versions, and the changes since the last compaction. */
export class ApiStore {
  private current = FIRST_VERSION;
  private compactedTo = 0;
  private readonly objects = new Map(SERVED.map(({ name }) => [name, new Map<string, ApiObject>()]));
  private readonly history = new Map(SERVED.map(({ name }) => [name, new Array<StoredEvent>()]));
  private readonly listeners = new Set<StoreListener>();

  get version(): number {
    return this.current;
  }

  /** Versions below it are forgotten. */
  get oldest(): number {
    return this.compactedTo;
  }

  /** By namespace and name, as etcd's keys sort. */
  list(resource: ServedResource): readonly ApiObject[] {
    return [...this.table(resource)].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, object]) => object);
  }

  get(resource: ServedResource, name: ObjectName): ApiObject | null {
    return this.table(resource).get(keyOf(name)) ?? null;
  }

  /** The changes after a version, which must not be forgotten. */
  since(resource: ServedResource, version: number): readonly StoredEvent[] {
    return this.events(resource).filter((event) => event.version > version);
  }

  /** Creates or replaces; the server sets version, uid and creation time. Returns the object as stored. */
  put(object: ApiObject): ApiObject {
    const resource = resourceOfKind(object['kind']);
    const name = nameOf(object);
    const previous = this.get(resource, name);
    const version = ++this.current;
    const metadata = metadataOf(object);
    const stored: ApiObject = {
      ...object,
      apiVersion: resource.apiVersion,
      metadata: {
        ...metadata,
        uid: (previous === null ? metadata : metadataOf(previous))['uid'] ?? uidOf(version),
        resourceVersion: String(version),
        creationTimestamp:
          (previous === null ? metadata : metadataOf(previous))['creationTimestamp'] ?? '2026-01-01T00:00:00Z',
      },
    };
    this.table(resource).set(keyOf(name), stored);
    this.record(resource, { version, type: previous === null ? 'ADDED' : 'MODIFIED', object: stored, previous });
    return stored;
  }

  /** Null when there was no such object. */
  delete(resource: ServedResource, name: ObjectName): ApiObject | null {
    const previous = this.get(resource, name);
    if (previous === null) return null;
    const version = ++this.current;
    this.table(resource).delete(keyOf(name));
    const object = { ...previous, metadata: { ...metadataOf(previous), resourceVersion: String(version) } };
    this.record(resource, { version, type: 'DELETED', object, previous });
    return object;
  }

  /** A change of something else: the version moves on, nothing here changes. */
  bump(): number {
    return ++this.current;
  }

  /** Forgets the changes so far: a watch from an older version is answered with 410. */
  compact(): void {
    this.compactedTo = this.current;
    for (const events of this.history.values()) events.length = 0;
  }

  /** As after a restore from a backup: the sequence goes back. */
  rewind(version: number): void {
    this.current = version;
    for (const [resource, events] of this.history) {
      this.history.set(
        resource,
        events.filter((event) => event.version <= version),
      );
    }
  }

  /** Returns what ends it. */
  onEvent(listener: StoreListener): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  private record(resource: ServedResource, event: StoredEvent): void {
    this.events(resource).push(event);
    for (const listener of this.listeners) listener(resource, event);
  }

  private table(resource: ServedResource): Map<string, ApiObject> {
    return this.objects.get(resource.name) ?? new Map<string, ApiObject>();
  }

  private events(resource: ServedResource): StoredEvent[] {
    return this.history.get(resource.name) ?? [];
  }
}

function uidOf(version: number): string {
  return `00000000-0000-4000-8000-${version.toString(16).padStart(12, '0')}`;
}
