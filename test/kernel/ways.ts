import { endpoint } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, type DualStackOptions, type FamilyView } from '../support/lab/packet-table.js';

/** Client and the way it takes to the Service of {@link web}. */
export const WAYS: readonly { readonly from: string; readonly to: (view: FamilyView) => string }[] = [
  { from: 'pod-c', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'node', to: (view) => endpoint(view.clusterIP(41), 80) },
  { from: 'client', to: (view) => endpoint(view.loadBalancerIP(3), 80) },
  { from: 'client', to: (view) => view.nodePort(30080) },
];

/** One from a pod, one from outside. */
export const SOME_WAYS = WAYS.filter((_, index) => index % 2 === 0);

export function web(endpoints: DualStackOptions['endpoints'], options: Partial<DualStackOptions> = {}): Manifest[] {
  return dualStack('web', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    ports: [{ port: 80, nodePort: 30080 }],
    endpoints,
    ...options,
  });
}
