import type { Family } from '../../base/ip.js';
import { POLICY_NAME } from './names.js';

export type RetryProtocol = 'TCP' | 'UDP';
export const RETRY_PROTOCOLS: readonly RetryProtocol[] = ['TCP', 'UDP'];

const LETTERS: Readonly<Record<Family, Readonly<Record<RetryProtocol, string>>>> = {
  IPv4: { TCP: 't', UDP: 'u' },
  IPv6: { TCP: 'T', UDP: 'U' },
};

/**
 * A name has four characters. The kernel lists no more of a policy's name in a rule (Linux 6.18, xt_CT's `usersize`), and
 * the legacy programs write back what they listed.
 */
export function policyName(family: Family, protocol: RetryProtocol, seconds: number): string {
  return `K${LETTERS[family][protocol]}${String(seconds).padStart(2, '0')}`;
}

/** The seconds after which attempts go elsewhere, by the name of a policy; null for the name of another. */
export function secondsNamed(name: string): number | null {
  const [, , seconds] = POLICY_NAME.exec(name) ?? [];
  return seconds === undefined ? null : Number(seconds);
}
