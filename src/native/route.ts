import type { Family } from '../base/ip.js';
import type { Applied } from './errors.js';

/** Each address stands for itself alone: /32 or /128. */
export interface AddressOperation {
  /** EEXIST: `add` found it on this link. EADDRNOTAVAIL: `delete` found none there. */
  readonly type: 'add' | 'delete';
  readonly family: Family;
  /** 4 or 16 bytes each, one after the other; a message to the kernel for each. */
  readonly addresses: Uint8Array;
}

export interface LinkAddresses {
  readonly link: string;
  /** 4 bytes each, one after the other. */
  readonly ipv4: Uint8Array;
  /** 16 bytes each. */
  readonly ipv6: Uint8Array;
}

/** What happened to links and addresses of this network namespace. */
export interface RouteChange {
  /** Names of links that came, went, changed, or of which an address came or went; each once. */
  readonly links: readonly string[];
  /** Something else may have happened unseen. */
  readonly missed: boolean;
}

/** Links and their addresses. Rejects with ERR_NETLINK. */
export interface RouteAddon {
  /** Addresses of a link, up or down, 4 or 16 bytes each; null when there is no such link. */
  linkAddresses(name: string): Promise<readonly Uint8Array[] | null>;
  /** The addresses of every link that has any, up or down, loopback included. */
  allAddresses(): Promise<readonly LinkAddresses[]>;
  /** Makes a link of type dummy, which is down; false: there is a link of that name, whatever it is. EOPNOTSUPP: the kernel has none of that type. */
  linkEnsureDummy(name: string): Promise<boolean>;
  /** False: there is no such link. */
  linkDelete(name: string): Promise<boolean>;
  /**
   * Does all of it in the order given, but for what it answers that the kernel refused. An error names the operation
   * (`index`), the address in it (`element`, and in words). Rejects with ENODEV when there is no such link.
   */
  addressApply(link: string, operations: readonly AddressOperation[]): Promise<Applied>;
  /**
   * Calls back when a link or an address changed; changes are gathered until JavaScript runs. Changes of IPv4 addresses by this environment do not count; for
   * links and IPv6 addresses not every kernel reports the author. Answers what ends it; it ends with the environment too, and does not keep the process
   * alive. Throws ERR_NETLINK when the kernel refuses.
   */
  routeWatch(onChange: (change: RouteChange) => void): () => void;
}
