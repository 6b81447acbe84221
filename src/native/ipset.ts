/** Sets of addresses and ports. Asking loads no module of the kernel. Rejects with ERR_NETLINK. */
export interface IpsetAddon {
  ipsetNames(): Promise<readonly string[]>;
  /** False: there is no such set. EBUSY: a rule or another set uses it. */
  ipsetDestroy(name: string): Promise<boolean>;
}
