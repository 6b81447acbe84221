import { createHash } from 'node:crypto';
import type { EventSubject, ProxyEvent } from '../../../base/events.js';
import { cutText } from '../../../base/outside-text.js';
import { trimEnd } from '../../../base/text.js';
import { formatMicroTime } from '../../../base/timestamp.js';

/** The fields of an event that come from its sender. */
interface EventStamp {
  /** The sender. */
  readonly controller: string;
  /** When it happened, in nanoseconds since the epoch; different for every event. */
  readonly at: bigint;
  /** The uid of the object that the event regards; null when not known. */
  readonly uid: string | null;
  readonly hostname: string;
}

/** kube-proxy's name, by which users and their tools look for a service proxy's events (behaviour EV-10). */
export const PROXY_CONTROLLER = 'kube-proxy';

/** Limits of the API server's validation, in bytes. */
const MAX_NAME = 253;
const MAX_INSTANCE = 128;
export const MAX_NOTE = 1024;

/** Where events about an object are posted: in its namespace, in `default` if it has none. */
export function eventPath(regarding: EventSubject): string {
  return `/apis/events.k8s.io/v1/namespaces/${namespaceOf(regarding)}/events`;
}

/**
 * An events.k8s.io/v1 Event as JSON, with the fields of kube-proxy's events; the note has been cut. Its name is the
 * object's name and the time in hexadecimal. An event that all nodes share has a digest instead of the time: the name is the
 * same on all nodes, so the API server stores one (and deletes it after its `--event-ttl`).
 */
export function eventBody(event: ProxyEvent, stamp: EventStamp): string {
  const { type, reason, action, regarding, related, note, finding } = event;
  const { at, uid, hostname, controller } = stamp;
  const suffix = `.${finding === undefined ? at.toString(16) : digest([reason, uid, finding])}`;
  const stem = trimEnd(regarding.name.slice(0, MAX_NAME - suffix.length), '-.');
  return JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${stem}${suffix}`, namespace: namespaceOf(regarding) },
    eventTime: formatMicroTime(at / 1000n),
    reportingController: controller,
    reportingInstance: cutText(`${controller}-${hostname}`, MAX_INSTANCE),
    action,
    reason,
    regarding: { ...reference(regarding), ...(uid === null ? {} : { uid }) },
    ...(related === null ? {} : { related: reference(related) }),
    note,
    type,
  });
}

/** As long as the time. It includes the uid: another object of the same name has its own events. */
function digest(of: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(of)).digest('hex').slice(0, 16);
}

function namespaceOf({ namespace }: EventSubject): string {
  return namespace === '' ? 'default' : namespace;
}

function reference({ apiVersion, kind, namespace, name }: EventSubject): Record<string, string> {
  return { kind, ...(namespace === '' ? {} : { namespace }), name, apiVersion };
}
