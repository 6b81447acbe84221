/** Virtual services. Asking loads no module of the kernel: what is not loaded holds nothing. */

/** A virtual service of ip_vs. */
export interface IpvsService {
  /** IANA number; 0 with a mark. */
  readonly protocol: number;
  readonly family: 'IPv4' | 'IPv6';
  /** 4 or 16 bytes; null where a packet mark selects the packets. */
  readonly address: Uint8Array | null;
  readonly port: number;
  /** 0 where there is an address. */
  readonly mark: number;
}

export interface IpvsListedService extends IpvsService {
  /** Of all its destinations, whether active or not. */
  readonly connections: number;
}

/** Rejects with ERR_NETLINK. */
export interface IpvsAddon {
  ipvsList(): Promise<readonly IpvsListedService[]>;
  /** False: there is no such service. Its connections end with it. */
  ipvsDelete(service: IpvsService): Promise<boolean>;
}
