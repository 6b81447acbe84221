/** Links and their addresses. Rejects with ERR_NETLINK. */
export interface RouteAddon {
  /** Addresses of a link, up or down, 4 or 16 bytes each; null when there is no such link. */
  linkAddresses(name: string): Promise<readonly Uint8Array[] | null>;
  /** False: there is no such link. */
  linkDelete(name: string): Promise<boolean>;
}
