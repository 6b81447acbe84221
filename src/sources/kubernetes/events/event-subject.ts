import type { EventSubject } from '../../../base/events.js';
import { readTextWithin } from '../../../base/read-text.js';
import type { ApiConnection } from '../connection.js';
import { ENDPOINT_SLICES, SERVICES } from '../resources.js';

const ACCEPT = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
const MAX_BYTES = 1 << 20;

/**
 * The uid of a Service or an EndpointSlice, without which `kubectl describe` does not show an event; null for anything else and when it cannot be had. Rows do
 * not keep it, as they would by the thousand for an event now and then. Listed, as a service proxy has no right to get single ones.
 */
export async function lookUpUid(
  connection: ApiConnection,
  { kind, namespace, name }: EventSubject,
  signal: AbortSignal,
): Promise<string | null> {
  const resource = [SERVICES, ENDPOINT_SLICES].find((each) => each.kind === kind);
  if (resource === undefined) return null;
  const collection = resource.path.lastIndexOf('/');
  const path = `${resource.path.slice(0, collection)}/namespaces/${namespace}${resource.path.slice(collection)}`;
  try {
    const { status, body } = await connection.get(
      path,
      { fieldSelector: `metadata.name=${name}`, resourceVersion: '0' },
      { accept: ACCEPT, signal },
    );
    const text = await readTextWithin(body, MAX_BYTES, () => new Error('too long'));
    return status === 200 ? uidOfFirst(JSON.parse(text)) : null;
  } catch {
    return null;
  }
}

function uidOfFirst(list: unknown): string | null {
  const [item] = asList(field(list, 'items'));
  const uid = field(field(item, 'metadata'), 'uid');
  return typeof uid === 'string' && uid !== '' ? uid : null;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
