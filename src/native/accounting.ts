/** Accounting objects of the kernel, which rules count packets in. */
export interface AccountingAddon {
  /**
   * Makes an accounting object (nfnetlink_acct) of at most 31 bytes of name, which a rule counts packets in by `-m nfacct`; false: it was there, and keeps
   * its count. Rejects with ERR_NETLINK, with errno EINVAL where the kernel has no accounting.
   */
  accountCreate(name: string): Promise<boolean>;
  /** The packets that it counted; null: there is no such object. Rejects in the same way. */
  accountPackets(name: string): Promise<number | null>;
}
