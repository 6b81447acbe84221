import type { EndpointAttempts } from '../../dataplane/contract.js';
import type { MetricFamily } from '../exposition.js';
import { OTHER } from './service-series.js';

const COUNTED = [
  ['attempts', 'TCP connection attempts through Services to an endpoint; a retry to another endpoint counts again.'],
  ['answers', 'Answers of an endpoint to them (SYN/ACK).'],
  ['refusals', 'Resets by an endpoint in answer to them.'],
] as const;

/** Metrics of attempts: so many endpoints have series of their own, the others share one. */
export function attemptFamilies(rows: readonly EndpointAttempts[], max: number): readonly MetricFamily[] {
  const own = rows.slice(0, max);
  const others = rows.slice(max);
  return COUNTED.map(([counted, help]) => ({
    name: `pointsman_endpoint_connect_${counted}_total`,
    help,
    type: 'counter',
    values: [
      ...own.map((row) => ({ labels: { endpoint: row.endpoint }, value: row[counted] })),
      ...(others.length === 0
        ? []
        : [{ labels: { endpoint: OTHER }, value: others.reduce((sum, row) => sum + row[counted], 0) }]),
    ],
  }));
}
