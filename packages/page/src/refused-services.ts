import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ObjectKey, ServiceRow } from '../../../src/state/rows.js';

/** A Service of which nothing can be used, and of which there is no earlier version. */
interface RefusedService {
  readonly key: ObjectKey;
  /** Its name is all that is known. */
  readonly row: ServiceRow;
  readonly reason: string;
}

/** In the order of their names. */
export function refusedServices({
  leftOut,
  snapshot,
}: Pick<RunningProcess, 'leftOut' | 'snapshot'>): readonly RefusedService[] {
  const found = new Map<ObjectKey, RefusedService>();
  for (const { ref, service: key, isWhole, text } of leftOut()) {
    if (ref.kind !== 'Service' || !isWhole || key === null || snapshot.service(key) !== undefined) continue;
    if (!found.has(key)) found.set(key, { key, row: rowOf(ref), reason: text });
  }
  return [...found.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}

function rowOf({ namespace, name }: { readonly namespace: string; readonly name: string }): ServiceRow {
  return {
    kind: 'Service',
    namespace,
    name,
    creationTime: null,
    type: 'ClusterIP',
    clusterIPs: [],
    ipFamilies: [],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    affinitySeconds: null,
    healthCheckNodePort: 0,
    connectRetry: null,
    udpRetry: null,
    loadBalancerFlags: 0,
    endingConnections: null,
    ports: [],
  };
}
