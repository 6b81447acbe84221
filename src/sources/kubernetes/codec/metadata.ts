import { BALANCE_ANNOTATIONS } from '../../translate/balance.js';
import { DRAIN_ANNOTATION, RESET_ANNOTATION } from '../../translate/ending-connections.js';
import { INITIAL_EVENTS_END } from './events.js';
import { CodecError } from './errors.js';
import { BYTES, tagOf, type Cursor } from './wire.js';

/** meta/v1 ObjectMeta, in part. The translators take it as it is. */
export class Metadata {
  name = '';
  namespace = '';
  resourceVersion = '';
  /** Seconds since the epoch; null for none. */
  creation: number | null = null;
  deletion: number | null = null;
  readonly labels: Record<string, string> = {};
  readonly annotations: Record<string, string> = {};

  get creationTimestamp(): Date | null {
    return this.creation === null ? null : new Date(this.creation * 1000);
  }

  get deletionTimestamp(): Date | null {
    return this.deletion === null ? null : new Date(this.deletion * 1000);
  }
}

/** The labels that the translators read. All others are passed over. */
const LABELS_READ: readonly string[] = [
  'kubernetes.io/service-name',
  'service.kubernetes.io/headless',
  'service.kubernetes.io/service-proxy-name',
  'topology.kubernetes.io/zone',
];

/** The annotations that we or the translators read. */
const ANNOTATIONS_READ: readonly string[] = [
  INITIAL_EVENTS_END,
  'endpoints.kubernetes.io/last-change-trigger-time',
  'pointsman.dev/connect-retry',
  'pointsman.dev/udp-retry',
  'preserve-destination',
  'winProxyOptimization',
  ...BALANCE_ANNOTATIONS,
  RESET_ANNOTATION,
  DRAIN_ANNOTATION,
];

/** Field numbers of ObjectMeta. */
const NAME = tagOf(1, BYTES);
const NAMESPACE = tagOf(3, BYTES);
const RESOURCE_VERSION = tagOf(6, BYTES);
const CREATION_TIMESTAMP = tagOf(8, BYTES);
const DELETION_TIMESTAMP = tagOf(9, BYTES);
const LABELS = tagOf(11, BYTES);
const ANNOTATIONS = tagOf(12, BYTES);

/** Reads the nested ObjectMeta that comes next. */
export function readMetadata(cursor: Cursor): Metadata {
  const metadata = new Metadata();
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) readField(cursor, tag, metadata);
  cursor.leave(outer);
  return metadata;
}

function readField(cursor: Cursor, tag: number, metadata: Metadata): void {
  switch (tag) {
    case NAME:
      metadata.name = cursor.text();
      return;
    case NAMESPACE:
      metadata.namespace = cursor.sharedText();
      return;
    case RESOURCE_VERSION:
      metadata.resourceVersion = cursor.text();
      return;
    case CREATION_TIMESTAMP:
      metadata.creation = readTime(cursor);
      return;
    case DELETION_TIMESTAMP:
      metadata.deletion = readTime(cursor);
      return;
    case LABELS:
      readEntry(cursor, LABELS_READ, metadata.labels);
      return;
    case ANNOTATIONS:
      readEntry(cursor, ANNOTATIONS_READ, metadata.annotations);
      return;
    default:
      cursor.skip(tag);
  }
}

/** A map's entry: key is field 1, value field 2. */
const KEY = tagOf(1, BYTES);
const VALUE = tagOf(2, BYTES);

/** Reads an entry of a map from text to text, when its key is one of those. A key comes before its value. */
function readEntry(cursor: Cursor, keys: readonly string[], into: Record<string, string>): void {
  const outer = cursor.enter();
  let key: string | null = null;
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === KEY) {
      key = cursor.oneOf(keys);
      if (key !== null) into[key] = '';
    } else if (tag === VALUE && key !== null) into[key] = cursor.text();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
}

const SECONDS = tagOf(1, 0);
/** What a Date can hold. */
const MAX_SECONDS = 8.64e12;

/** meta/v1 Time: whole seconds. An empty message is the zero time, which JSON writes as null. */
function readTime(cursor: Cursor): number | null {
  const outer = cursor.enter();
  let seconds: number | null = null;
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === SECONDS) seconds = cursor.integer();
    else {
      cursor.skip(tag);
      seconds ??= 0;
    }
  }
  cursor.leave(outer);
  if (seconds !== null && Math.abs(seconds) > MAX_SECONDS) throw new CodecError(`a time ${seconds} s from the epoch`);
  return seconds;
}
