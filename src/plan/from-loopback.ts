import type { EndpointList } from '../base/endpoint-list.js';
import type { FrontendPlan } from './types.js';

/** The endpoints of connections that this process accepts on loopback (behaviour SV-36). */
interface LoopbackEndpoints {
  readonly list: EndpointList;
  /** Their shares, in the order of the list; null: equal ones. */
  readonly weights: readonly number[] | null;
}

/** With policy Local only those on this node, as in kube-proxy, although its own clients may otherwise use all. */
export function endpointsFromLoopback({
  endpoints,
  localEndpoints,
  balance,
}: Pick<FrontendPlan, 'endpoints' | 'localEndpoints' | 'balance'>): LoopbackEndpoints {
  const shares = localEndpoints === null ? balance?.endpoints : balance?.localEndpoints;
  return { list: localEndpoints ?? endpoints, weights: shares?.weights ?? null };
}

/**
 * The place in the list of the endpoint for a new connection; the list has at least one. All connections come from one
 * address, so hashing clients has nothing to tell apart: they are shared by weight, and by chance.
 *
 * @param random at least 0, and less than 1.
 */
export function pickEndpoint({ list, weights }: LoopbackEndpoints, random: number): number {
  if (weights === null) return Math.floor(random * list.count);
  let rest = random * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => (rest -= weight) < 0);
  return index < 0 ? list.count - 1 : index;
}
