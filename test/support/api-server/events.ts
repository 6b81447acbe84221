import type { ApiObject } from '../api-objects.js';
import type { StatusFields } from './encoding.js';
import { metadataOf, nameOf } from './resources.js';

/** Where an event is posted. */
export interface EventTarget {
  readonly group: 'v1' | 'events.k8s.io/v1';
  readonly namespace: string;
}

export function eventTargetOf(path: string): EventTarget | null {
  const match = /^\/(?:api|apis\/(events\.k8s\.io))\/v1\/namespaces\/([^/]+)\/events$/.exec(path);
  if (match === null) return null;
  return { group: match[1] === undefined ? 'v1' : 'events.k8s.io/v1', namespace: match[2] ?? '' };
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[-+]\d\d:\d\d)$/;
const NAMESPACED = ['Service', 'EndpointSlice', 'Pod'];

/**
 * What the API server says against an event; null when it takes it. Core events are taken in their old form unless they have an eventTime; those of
 * events.k8s.io/v1 have to be complete (pkg/apis/core/validation/events.go in 1.36).
 */
export function eventProblem(event: ApiObject, { group, namespace }: EventTarget): StatusFields | null {
  if (event['apiVersion'] !== group || event['kind'] !== 'Event') return refusal(400, 'BadRequest', ['not an Event']);
  const metadata = metadataOf(event);
  if ((metadata['namespace'] ?? namespace) !== namespace)
    return refusal(400, 'BadRequest', [
      'the namespace of the provided object does not match the namespace sent on the request',
    ]);
  const modern = group !== 'v1' || event['eventTime'] !== undefined;
  const problems = [...common(event, group, namespace), ...(modern ? complete(event, group) : [])];
  return problems.length === 0 ? null : refusal(422, 'Invalid', problems);
}

function common(event: ApiObject, group: EventTarget['group'], namespace: string): readonly string[] {
  const problems: string[] = [];
  const { name } = nameOf(event);
  if (!SUBDOMAIN.test(name) || name.length > 253) problems.push(`metadata.name: Invalid value: "${name}"`);
  const field = group === 'v1' ? 'involvedObject' : 'regarding';
  const object = asObject(event[field]);
  const own = typeof object['namespace'] === 'string' ? object['namespace'] : '';
  if (own === '' ? namespace !== 'default' : own !== namespace)
    problems.push(`${field}.namespace: Invalid value: "${own}": does not match event.namespace`);
  if (own === '' && NAMESPACED.includes(String(object['kind'])))
    problems.push(`${field}.namespace: Required value: required for kind ${String(object['kind'])}`);
  return problems;
}

function complete(event: ApiObject, group: EventTarget['group']): readonly string[] {
  const problems: string[] = [];
  const text = (field: string, limit: number, required: boolean): void => {
    const value = event[field] ?? '';
    if (typeof value !== 'string') problems.push(`${field}: not a string`);
    else if (required && value === '') problems.push(`${field}: Required value`);
    else if (Buffer.byteLength(value) > limit) problems.push(`${field}: Too long: may not be more than ${limit} bytes`);
  };
  if (typeof event['eventTime'] !== 'string' || !MICRO_TIME.test(event['eventTime']))
    problems.push('eventTime: Required value');
  text(group === 'v1' ? 'reportingComponent' : 'reportingController', 317, true);
  text('reportingInstance', 128, true);
  text('action', 128, true);
  text('reason', 128, true);
  text(group === 'v1' ? 'message' : 'note', 1024, false);
  if (event['type'] !== 'Normal' && event['type'] !== 'Warning')
    problems.push(`type: Invalid value: "${String(event['type'])}"`);
  for (const old of ['deprecatedFirstTimestamp', 'deprecatedLastTimestamp', 'deprecatedCount', 'deprecatedSource'])
    if (event[old] !== undefined && group !== 'v1') problems.push(`${old}: Invalid value: needs to be unset`);
  return problems;
}

function refusal(code: number, reason: string, problems: readonly string[]): StatusFields {
  return { code, reason, message: `Event is invalid: ${problems.join(', ')}` };
}

function asObject(value: unknown): ApiObject {
  return typeof value === 'object' && value !== null ? (value as ApiObject) : {};
}
