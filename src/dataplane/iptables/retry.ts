import { TCP_STATES, UDP_STATES, type ConntrackTimeouts, type RetryTimes } from '../../base/conntrack-timeouts.js';
import type { Family } from '../../base/ip.js';
import { protocolNumber } from '../../base/protocol.js';
import type { TimeoutPolicy } from '../../native/contract.js';
import { retryOf } from '../../plan/retry.js';
import type { FrontendPlan, NodePlan } from '../../plan/types.js';
import { fixedChain } from '../xtables/masquerade.js';
import type { Chain } from '../xtables/rules.js';
import { frontendMatch, hasEndpoints } from './service-chains.js';
import { CHAIN, POLICY_NAME } from './names.js';
import { policyName, secondsNamed } from './policy-names.js';

/**
 * Attempts that no endpoint answers: a timeout policy of conntrack makes the kernel forget them soon, so that the client's
 * next packet is balanced anew. Rules of table raw give it to new flows of Services, before connection tracking sees the
 * packet. All states but the unanswered one keep the timeouts of the sysctls.
 */

/** The policy of a name, with the sysctls' timeouts in the other states. */
export function policyNamed(name: string, sysctls: ConntrackTimeouts): TimeoutPolicy {
  const [, letter = 't'] = POLICY_NAME.exec(name) ?? [];
  const seconds = secondsNamed(name) ?? 0;
  const family: Family = letter === letter.toLowerCase() ? 'IPv4' : 'IPv6';
  const { tcp, udp } = sysctls;
  if (letter.toLowerCase() === 't') {
    const own = { ...tcp, syn_sent: Math.min(tcp.syn_sent, seconds) };
    return { name, family, protocol: protocolNumber('TCP'), seconds: TCP_STATES.map((state) => own[state]) };
  }
  const own = { ...udp, unreplied: Math.min(udp.unreplied, seconds) };
  return { name, family, protocol: protocolNumber('UDP'), seconds: UDP_STATES.map((state) => own[state]) };
}

/** The policy that flows of a frontend get; null: none. */
export function policyOf(
  frontend: Pick<FrontendPlan, 'family' | 'protocol' | 'port' | 'retrySeconds' | 'endpoints' | 'localEndpoints'>,
  times: RetryTimes,
): string | null {
  const seconds = retryOf(frontend, times);
  const { family, protocol } = frontend;
  if (seconds === null || protocol === 'SCTP' || !hasEndpoints(frontend)) return null;
  return policyName(family, protocol, seconds);
}

/** Whether flows of any frontend may get a policy. */
export function hasRetries(node: Pick<NodePlan, 'retryTimes'>, frontends: Iterable<FrontendPlan>): boolean {
  if (node.retryTimes.tcp !== null || node.retryTimes.dns !== null) return true;
  for (const { retrySeconds } of frontends) if ((retrySeconds ?? 0) > 0) return true;
  return false;
}

/** The rule that gives a frontend's flows its policy; none where they get none. */
export function retryRules(frontend: FrontendPlan, { retryTimes }: Pick<NodePlan, 'retryTimes'>): readonly string[] {
  const policy = policyOf(frontend, retryTimes);
  if (policy === null) return [];
  return [`${frontendMatch(frontend)} ${usePolicy(policy)}`];
}

export function usePolicy(policy: string): string {
  return `-j CT --timeout ${policy}`;
}

/** The chain that every packet meets: of TCP only a connection's first packet goes on to the frontends. */
export function retryEntry(): Chain {
  return fixedChain('raw', CHAIN.retry, [
    `-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j ${CHAIN.retryOf.TCP}`,
    `-p udp -j ${CHAIN.retryOf.UDP}`,
  ]);
}

/** A frontend's seconds in the plan's terms. @param policy that its flows get; undefined: none. */
export function retrySecondsFor(
  policy: string | undefined,
  frontend: Pick<FrontendPlan, 'protocol' | 'port'>,
  times: RetryTimes,
): number | null {
  const held = policy === undefined ? null : secondsNamed(policy);
  return held === retryOf({ ...frontend, retrySeconds: null }, times) ? null : (held ?? 0);
}
