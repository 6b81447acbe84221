import type { IptablesFamily } from './iptables.js';

/** A timeout policy of conntrack (nfnetlink_cttimeout), which a rule in table raw gives to new flows by `-j CT --timeout NAME`. */
export interface TimeoutPolicy {
  /** At most 31 bytes. */
  readonly name: string;
  readonly family: IptablesFamily;
  /** IANA number. */
  readonly protocol: number;
  /** How long a flow is kept in each state of the protocol, in the order of the kernel's attributes (`TCP_STATES`, `UDP_STATES`). */
  readonly seconds: readonly number[];
}

/** Reject with ERR_NETLINK, with errno EINVAL where the kernel has no such policies. */
export interface TimeoutsAddon {
  /** The policies of both families. */
  timeoutList(): Promise<readonly TimeoutPolicy[]>;
  /** Makes the policy, or gives the one of this name other seconds, which flows that have it follow from their next packet on. */
  timeoutSet(policy: TimeoutPolicy): Promise<void>;
  /** False: there is none. Rejects with EBUSY while a rule names it. */
  timeoutDelete(name: string): Promise<boolean>;
}
