import type { IPAddress } from '../../base/ip.js';
import type { FrontendKey } from '../../plan/types.js';
import type { QuarantinedFrontend } from '../contract.js';
import type { Desired } from './desired.js';
import { AWAIT_MS } from './endpoints.js';
import type { Ledgers } from './ledgers.js';
import type { LoadBalancerKey } from './listing.js';

/** From then on it is reported as a refusal that HNS has no endpoint for a pod of this node. */
const PATIENCE_MS = 10_000;

interface QuarantineParts {
  readonly ledgers: Ledgers;
  readonly desired: Pick<Desired, 'get' | 'usersOf'>;
  /** Addresses of pods that HNS does not know, and since when. */
  readonly awaited: ReadonlyMap<IPAddress, number>;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  readonly networkName: string;
}

/** Every frontend with a refusal of HNS. An endpoint that no frontend needs, and that HNS does not remove, stands for itself. */
export function quarantinedFrontends(parts: QuarantineParts): readonly QuarantinedFrontend[] {
  const { ledgers, desired, awaited, now, networkName } = parts;
  const found = new Map<FrontendKey, QuarantinedFrontend>();
  const add = (
    key: LoadBalancerKey,
    { reason, since, retryAt }: Omit<QuarantinedFrontend, 'frontend' | 'absent'>,
  ): void => {
    const wanted = desired.get(key);
    const frontend = wanted?.plan.key ?? key;
    const absent = wanted !== undefined && !ledgers.loadBalancers.acknowledged.has(key);
    if (!found.has(frontend)) found.set(frontend, { frontend, reason, since, retryAt, ...(absent ? { absent } : {}) });
  };
  for (const [key, quarantined] of ledgers.loadBalancers.quarantined) add(key, quarantined);
  for (const [key, quarantined] of ledgers.endpoints.quarantined) {
    const users = desired.usersOf(key as IPAddress);
    for (const user of users) add(user, quarantined);
    if (users.size === 0) add(`endpoint ${key}`, quarantined);
  }
  const time = now();
  for (const [address, since] of awaited) {
    if (time - since < PATIENCE_MS) continue;
    const reason = `HNS network ${networkName} has no endpoint ${address}, which is on this node`;
    for (const user of desired.usersOf(address)) add(user, { reason, since, retryAt: time + AWAIT_MS.most });
  }
  return [...found.values()];
}
