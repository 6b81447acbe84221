import { DNS_PORT, type RetryTimes } from '../base/conntrack-timeouts.js';
import type { ServicePortRow, ServiceRow } from '../state/rows.js';
import type { ModeTraits } from './facts.js';
import type { FrontendPlan } from './types.js';

/**
 * After how many seconds attempts to a frontend of a Service port go to another endpoint; 0: never. Null: the node's times
 * apply.
 *
 * @param number the frontend's port.
 */
export function retrySeconds(
  service: Pick<ServiceRow, 'connectRetry' | 'udpRetry' | 'affinitySeconds'>,
  { protocol, port }: Pick<ServicePortRow, 'protocol' | 'port'>,
  number: number,
  times: RetryTimes,
  retries: ModeTraits['retriesAttempts'],
): number | null {
  if (retries === 'none' || protocol === 'SCTP') return null;
  // A node port does not show whether it is for DNS.
  const ofPort = protocol === 'TCP' ? times.tcp : port === DNS_PORT ? times.dns : null;
  const isLeft = retries === 'without-affinity' && service.affinitySeconds !== null;
  const asked = (protocol === 'TCP' ? service.connectRetry : service.udpRetry) ?? ofPort ?? 0;
  const wanted = isLeft ? 0 : asked;
  return wanted === (timeOf(protocol, number, times) ?? 0) ? null : wanted;
}

/** After how many seconds attempts to a frontend go to another endpoint; null: never. */
export function retryOf(
  { protocol, port, retrySeconds }: Pick<FrontendPlan, 'protocol' | 'port' | 'retrySeconds'>,
  times: RetryTimes,
): number | null {
  const seconds = retrySeconds ?? timeOf(protocol, port, times) ?? 0;
  return seconds === 0 ? null : seconds;
}

/** The node's default. */
function timeOf(protocol: ServicePortRow['protocol'], port: number, { tcp, dns }: RetryTimes): number | null {
  if (protocol === 'TCP') return tcp;
  return protocol === 'UDP' && port === DNS_PORT ? dns : null;
}
