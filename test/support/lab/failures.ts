import type { TimedOutcome, Watch } from './lab.js';

/** What failed of watched requests, which end with this. @throws when nobody ever answered. */
export async function failed(watches: readonly Watch[]): Promise<readonly TimedOutcome[]> {
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  if (!outcomes.some((outcome) => 'name' in outcome)) throw new Error('nobody ever answered');
  return outcomes.filter((outcome) => 'error' in outcome);
}
