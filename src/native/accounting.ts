/** Accounting objects of the kernel, which rules count packets in. */
export interface AccountingAddon {
  /**
   * Makes an accounting object (nfnetlink_acct), in which rules with `-m nfacct` count packets. The name has at most 31 bytes.
   * Returns false if the object exists; it keeps its count. Rejects with ERR_NETLINK, with errno EINVAL if the kernel has no
   * accounting.
   */
  accountCreate(name: string): Promise<boolean>;
  /** The packets that the object counted; null if it does not exist. Rejects as above. */
  accountPackets(name: string): Promise<number | null>;
}
