import type { Attributes, Context, Span } from '@opentelemetry/api';
import type { Family } from '../../base/ip.js';
import type { TracedObject } from '../../base/tracing.js';
import type { ObjectKey, Row } from '../../state/rows.js';
import type { Commit } from '../cycle-observer.js';
import { isSampled, within, type Spans } from './spans.js';

/** So many sampled changes are followed while the kernel takes none; of what comes later it is only said how many they are. */
const MAX_FOLLOWED = 1000;

/** A change of an object on its way to the kernel. */
export interface FollowedChange {
  readonly span: Span;
  /** Those whose kernel has not acknowledged it. */
  readonly waiting: Set<Family>;
  /** Those whose plan leaves it to the next run. */
  readonly deferred: Set<Family>;
  /** The Service that it is about; null: none apart from all others. */
  readonly service: ObjectKey | null;
}

/** What a run takes. */
interface TakenChanges {
  /** Those that are sampled, with those of earlier runs that failed. */
  readonly followed: readonly FollowedChange[];
  /** How many there are, followed or not. */
  readonly count: number;
  /** In which the run begins; null: it has a trace of its own. */
  readonly parent: Context | null;
}

/** A trace for each change, from when it was heard of until it is acknowledged by every family that it concerns. */
export class Changes {
  private received: readonly TracedObject[] = [];
  /** The same by kind, namespace and name, once it is asked for: there may be tens of thousands in one turn. */
  private receivedByName: ReadonlyMap<string, TracedObject> | null = null;
  private queued: FollowedChange[] = [];
  private taken: FollowedChange[] = [];
  /** Since the last run. */
  private count = 0;
  /** The trace of the first of them that is not sampled. */
  private unsampled: Context | null = null;

  constructor(private readonly spans: Spans) {}

  /** What is committed comes of what was heard. */
  committing(received: readonly TracedObject[], commit: () => void): void {
    this.received = received;
    this.receivedByName = null;
    commit();
    this.received = [];
    this.receivedByName = null;
  }

  committed({ edits, receivedAt, families }: Commit): void {
    const now = performance.now();
    for (const { before, after } of edits) {
      const row = after ?? before;
      if (row !== null) this.begin(row, before, after === null, receivedAt ?? now, families);
    }
  }

  /** What was committed before this call. */
  take(): TakenChanges {
    const { count, queued } = this;
    const followed = [...this.taken, ...queued];
    for (const { deferred } of followed) deferred.clear();
    const [first] = followed;
    const parent = first === undefined ? this.unsampled : within(first.span);
    this.taken = followed;
    this.queued = [];
    this.count = 0;
    this.unsampled = null;
    return { followed, count, parent };
  }

  /** Of what was taken, what is about these Services waits for the next run. */
  deferred(family: Family, services: ReadonlySet<ObjectKey>): void {
    for (const { service, deferred } of this.taken) if (service !== null && services.has(service)) deferred.add(family);
  }

  /** A family's kernel holds them, and nothing contradicts them. */
  arrived(changes: readonly FollowedChange[], family: Family): void {
    for (const { span, waiting, deferred } of changes)
      if (!deferred.has(family) && waiting.delete(family) && waiting.size === 0) this.spans.end(span);
    this.taken = this.taken.filter(({ waiting }) => waiting.size > 0);
  }

  private begin(row: Row, before: Row | null, removed: boolean, at: number, families: readonly Family[]): void {
    this.count++;
    if (this.queued.length + this.taken.length >= MAX_FOLLOWED) return;
    const concerned = families.filter((family) => row.kind !== 'EndpointSlice' || row.family === family);
    if (concerned.length === 0) return;
    const type = removed ? 'DELETED' : before === null ? 'ADDED' : 'MODIFIED';
    const span = this.spans.start(`change ${row.kind}`, undefined, { at });
    if (!isSampled(span)) {
      this.unsampled ??= within(span);
      return;
    }
    span.setAttributes(this.describe(row, type));
    this.spans.record('state', within(span), at, performance.now());
    this.queued.push({ span, waiting: new Set(concerned), deferred: new Set(), service: serviceOf(row) });
  }

  private describe(row: Row, type: string): Attributes {
    const namespace = 'namespace' in row ? row.namespace : '';
    const { kind, name } = row;
    this.receivedByName ??= new Map(this.received.map((object) => [nameOf(object), object]));
    const received = this.receivedByName.get(nameOf({ kind, namespace, name }));
    return {
      'k8s.object.kind': kind,
      'k8s.object.name': name,
      'pointsman.change': type,
      ...(namespace === '' ? {} : { 'k8s.namespace.name': namespace }),
      ...(kind === 'EndpointSlice' ? { 'pointsman.family': row.family, 'k8s.service.name': row.serviceName } : {}),
      ...(received === undefined
        ? {}
        : { 'k8s.object.resource_version': received.resourceVersion, 'k8s.watch.event': received.type }),
    };
  }
}

function serviceOf(row: Row): ObjectKey | null {
  if (row.kind === 'Service') return `${row.namespace}/${row.name}`;
  return row.kind === 'EndpointSlice' ? `${row.namespace}/${row.serviceName}` : null;
}

function nameOf({ kind, namespace, name }: Pick<TracedObject, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace}/${name}`;
}
