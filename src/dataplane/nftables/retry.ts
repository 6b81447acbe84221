import { DNS_PORT, TCP_STATES, UDP_STATES, type ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import type { FrontendPlan, NodePlan } from '../../plan/types.js';
import { dport, jump, match, meta, useTimeout, type Chain, type Rule, type TimeoutDeclaration } from './json.js';
import { CHAIN } from './names.js';

/**
 * Attempts that no endpoint answers: a `ct timeout` object makes conntrack forget them soon, so that the client's next
 * packet begins anew and is balanced again. A rule gives it to new flows of Services before their endpoint is picked. All
 * states but the unanswered one keep the timeouts of the sysctls, and the object's name has all of its values. When a
 * sysctl changes, the rule names another object.
 */

type RetryProtocol = TimeoutDeclaration['protocol'];

/** The frontends that differ from the node's times: their flows are as all others, or go on after so many seconds. */
export type RetryClass = 'off' | `${RetryProtocol}-${number}`;

const RETRY_CLASS = /^(tcp|udp)-([1-9]\d*)$/;

/** Null: as the node has it. */
export function retryClassOf({ protocol, retrySeconds }: FrontendPlan): RetryClass | null {
  if (retrySeconds === null) return null;
  if (retrySeconds === 0 || protocol === 'SCTP') return 'off';
  return `${protocol === 'TCP' ? 'tcp' : 'udp'}-${retrySeconds}`;
}

/** Undefined: it is none. */
export function parseRetryClass(text: string): RetryClass | undefined {
  return text === 'off' || RETRY_CLASS.test(text) ? (text as RetryClass) : undefined;
}

/** As the plan has it. */
export function retrySecondsOf(retry: RetryClass | null): number | null {
  if (retry === null) return null;
  return Number(RETRY_CLASS.exec(retry)?.[2] ?? 0);
}

const PREFIX = `${CHAIN.retry}-`;

/** The chain that gives flows of a class to its object; null where nothing does. */
function chainOfClass(retry: RetryClass): string | null {
  return retry === 'off' ? null : `${PREFIX}${retry}`;
}

/** The class of a chain of {@link retryChains}; undefined for any other name. */
export function parseRetryChain(name: string): RetryClass | undefined {
  const retry = name.startsWith(PREFIX) ? parseRetryClass(name.slice(PREFIX.length)) : undefined;
  return retry === 'off' ? undefined : retry;
}

/** The first rules in a chain that picks an endpoint: none if no attempt goes on. */
export function retryRules(
  retry: RetryClass | null,
  { retryTimes: { tcp, dns } }: Pick<NodePlan, 'retryTimes'>,
): readonly Rule[] {
  const chain = retry !== null ? chainOfClass(retry) : tcp === null && dns === null ? null : CHAIN.retry;
  return chain === null ? [] : [[jump(chain)]];
}

/** Names of the chains that are in a table because a frontend is of a class. */
export function retryChainNames(retry: RetryClass | null): readonly string[] {
  const name = retry === null ? null : chainOfClass(retry);
  return name === null ? [] : [name];
}

/** @param timeouts null: this kernel has no such objects. */
export function retryChains(retry: RetryClass | null, timeouts: RetryTimeouts | null): readonly Chain[] {
  return retryChainNames(retry).map((name) => ({ name, hook: null, rules: rulesFor(retry, timeouts) }));
}

function rulesFor(retry: RetryClass | null, timeouts: RetryTimeouts | null): readonly Rule[] {
  return retry === null || retry === 'off' || timeouts === null ? [] : [[useTimeout(timeouts.nameOf(retry))]];
}

/** The chain of frontends that are as the node has it. */
export function retryChainOfNode({ retryTimes: { tcp, dns } }: NodePlan, timeouts: RetryTimeouts | null): Chain {
  const rules: Rule[] = [];
  if (timeouts !== null && tcp !== null) rules.push([useTimeout(timeouts.nameOf(`tcp-${tcp}`))]);
  if (timeouts !== null && dns !== null)
    rules.push([match(meta('l4proto'), 'udp'), match(dport, DNS_PORT), useTimeout(timeouts.nameOf(`udp-${dns}`))]);
  return { name: CHAIN.retry, hook: null, rules };
}

/** The classes that rules of {@link retryChainOfNode} name. */
export function retryClassesOfNode({ retryTimes: { tcp, dns } }: NodePlan): readonly RetryClass[] {
  return [...(tcp === null ? [] : [`tcp-${tcp}` as const]), ...(dns === null ? [] : [`udp-${dns}` as const])];
}

/** The objects of a table, by the sysctls in force. */
export class RetryTimeouts {
  constructor(private readonly sysctls: ConntrackTimeouts) {}

  /** The name of a class's object. */
  nameOf(retry: RetryClass): string {
    return `${PREFIX}${retry}-${Object.values(this.policy(retry)).join('-')}`;
  }

  declaration(retry: RetryClass): TimeoutDeclaration {
    return { name: this.nameOf(retry), protocol: protocolOf(retry), policy: this.policy(retry) };
  }

  private policy(retry: RetryClass): TimeoutDeclaration['policy'] {
    const seconds = retrySecondsOf(retry) ?? 0;
    const { tcp, udp } = this.sysctls;
    if (protocolOf(retry) === 'udp') {
      const own = { ...udp, unreplied: Math.min(udp.unreplied, seconds) };
      return Object.fromEntries(UDP_STATES.map((state) => [state, own[state]]));
    }
    const own = { ...tcp, syn_sent: Math.min(tcp.syn_sent, seconds) };
    return Object.fromEntries(TCP_STATES.map((state) => [state, own[state]]));
  }
}

function protocolOf(retry: RetryClass): RetryProtocol {
  return retry.startsWith('udp-') ? 'udp' : 'tcp';
}

const OBJECT = /^connect-retry-((?:tcp|udp)-[1-9]\d*)((?:-\d+)+)$/;

/** An object of a table of ours by its name; null for any other name. */
export function parseRetryTimeout(name: string): { readonly retry: RetryClass } | null {
  const [, found = ''] = OBJECT.exec(name) ?? [];
  const retry = parseRetryClass(found);
  return retry === undefined ? null : { retry };
}

/** The object that a name of ours describes; null for any other name. */
export function declarationNamed(name: string): TimeoutDeclaration | null {
  const [, found = '', tail = ''] = OBJECT.exec(name) ?? [];
  const retry = parseRetryClass(found);
  if (retry === undefined) return null;
  const states: readonly string[] = protocolOf(retry) === 'tcp' ? TCP_STATES : UDP_STATES;
  const values = tail.slice(1).split('-').map(Number);
  if (values.length !== states.length) return null;
  const policy = Object.fromEntries(states.map((state, index) => [state, values[index] ?? 0]));
  return { name, protocol: protocolOf(retry), policy };
}

/** Whether a rule of ours names an object. */
export function isTimeoutUsed(name: string, chains: ReadonlyMap<string, string>): boolean {
  const parsed = parseRetryTimeout(name);
  const users = [CHAIN.retry, ...(parsed === null ? [] : retryChainNames(parsed.retry))];
  return users.some((chain) => chains.get(chain)?.includes(` ${name}]`) === true);
}
