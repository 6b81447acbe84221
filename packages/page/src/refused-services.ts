import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ObjectKey } from '../../../src/state/rows.js';

/** A Service of which nothing can be used, and of which there is no earlier version. */
export interface RefusedService {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly name: string;
  readonly reason: string;
}

/** In the order of their names. */
export function refusedServices({
  leftOut,
  snapshot,
}: Pick<RunningProcess, 'leftOut' | 'snapshot'>): readonly RefusedService[] {
  const found = new Map<ObjectKey, RefusedService>();
  for (const { ref, service: key, isWhole, text } of leftOut()) {
    const { kind, namespace, name } = ref;
    if (kind !== 'Service' || !isWhole || key === null || snapshot.service(key) !== undefined) continue;
    if (!found.has(key)) found.set(key, { key, namespace, name, reason: text });
  }
  return [...found.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}
