import type { Explanation } from './explain.js';

/** Endpoints that see an address of the node in place of the sender's. */
export function masqueradedEndpoints({
  verdict,
  delivered,
}: Pick<Explanation, 'verdict' | 'delivered'>): readonly string[] {
  if (verdict.type !== 'forward') return [];
  const { endpoints, masquerade, hairpin } = verdict;
  return endpoints.filter((endpoint) => (masquerade || hairpin.includes(endpoint)) && !delivered.includes(endpoint));
}
