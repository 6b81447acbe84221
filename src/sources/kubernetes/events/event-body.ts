import type { EventSubject, ProxyEvent } from '../../../base/events.js';
import { cutText } from '../../../base/outside-text.js';
import { trimEnd } from '../../../base/text.js';
import { formatMicroTime } from '../../../base/timestamp.js';

/** What an event says of its sending. */
export interface EventStamp {
  /** Who sends it. */
  readonly controller: string;
  /** When it happened, in nanoseconds since the epoch; different for every event. */
  readonly at: bigint;
  /** Of the object it is about; null when not known. */
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

/** An events.k8s.io/v1 Event as JSON, of the shape kube-proxy's have; the note has been cut. Its name is the object's and the time in hexadecimal. */
export function eventBody({ type, reason, action, regarding, related, note }: ProxyEvent, stamp: EventStamp): string {
  const { at, uid, hostname, controller } = stamp;
  const suffix = `.${at.toString(16)}`;
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

function namespaceOf({ namespace }: EventSubject): string {
  return namespace === '' ? 'default' : namespace;
}

function reference({ apiVersion, kind, namespace, name }: EventSubject): Record<string, string> {
  return { kind, ...(namespace === '' ? {} : { namespace }), name, apiVersion };
}
