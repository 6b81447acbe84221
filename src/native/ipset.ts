import type { Family } from '../base/ip.js';
import type { Applied } from './errors.js';

/** The types of sets that are made and read here. */
export type IpsetType =
  'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'hash:net,net' | 'bitmap:port';

/**
 * A set by its name, with what its elements look like. They are packed one after the other, without gaps: an address (4 or 16 bytes) and a port (2) as in
 * EndpointList of base, the protocol (1, IANA number), and of `hash:ip,port,ip` and `hash:ip,port,net` a second address (4 or 16), the latter with the length
 * of its prefix (1; the kernel takes no 0). `hash:net,net` has two addresses and then the lengths of both prefixes, `hash:ip` the address alone,
 * `bitmap:port` the port alone. Sizes: {@link IPSET_ELEMENT}.
 */
export interface IpsetName {
  /** At most 31 bytes. */
  readonly name: string;
  readonly type: IpsetType;
  /** Null with `bitmap:port`, and only there. */
  readonly family: Family | null;
}

/** Bytes of a packed element: addresses, which have 4 or 16 bytes each, and others. */
export const IPSET_ELEMENT: { readonly [T in IpsetType]: { readonly addresses: 0 | 1 | 2; readonly others: number } } =
  {
    'hash:ip': { addresses: 1, others: 0 },
    'hash:ip,port': { addresses: 1, others: 3 },
    'hash:ip,port,ip': { addresses: 2, others: 3 },
    'hash:ip,port,net': { addresses: 2, others: 4 },
    'hash:net,net': { addresses: 2, others: 2 },
    'bitmap:port': { addresses: 0, others: 2 },
  };

/** How to make one. */
export interface IpsetCreation extends IpsetName {
  /** The kernel makes it a power of two, and more as the set grows. 0 with `bitmap:port`, as the next. */
  readonly hashSize: number;
  readonly maxElements: number;
  /** Whether elements may have comments. */
  readonly comments: boolean;
  /** Whether packets are counted that match an element. */
  readonly counters: boolean;
  /** The range of `bitmap:port`; null with others. */
  readonly ports: { readonly first: number; readonly last: number } | null;
}

export type IpsetOperation =
  /** EEXIST: there is a set of that name, whatever it is. */
  | { readonly type: 'create'; readonly set: IpsetCreation }
  /** ENOENT: there is none. EBUSY: a rule or another set uses it. */
  | { readonly type: 'destroy'; readonly name: string }
  /** ENOENT: there is none. */
  | { readonly type: 'flush'; readonly name: string }
  /**
   * ENOENT: there is no such set. ENOSPC: it is full. An element that is there already is no failure, and gets the new comment; one that fails keeps no other
   * from being done.
   */
  | {
      readonly type: 'add';
      readonly set: IpsetName;
      readonly elements: Uint8Array;
      /** One for each element, of at most 255 bytes, or null for all. EINVAL: the set has no comments. */
      readonly comments: readonly (string | null)[] | null;
    }
  /** In the same way; an element that is not there is no failure. */
  | { readonly type: 'delete'; readonly set: IpsetName; readonly elements: Uint8Array };

export interface IpsetListing {
  readonly name: string;
  /** Any of the kernel's types. */
  readonly type: string;
  readonly family: Family | null;
  readonly hashSize: number;
  readonly maxElements: number;
  readonly comments: boolean;
  readonly counters: boolean;
  readonly ports: { readonly first: number; readonly last: number } | null;
  /** It has no option beyond these that changes what is in it, such as a timeout or a netmask. */
  readonly plain: boolean;
  /** Rules and sets that use it. */
  readonly references: number;
  /** Packed by {@link IpsetName}; null when its type is none of {@link IpsetType}. */
  readonly elements: Uint8Array | null;
  /** One for each element; null: none has one. */
  readonly elementComments: readonly (string | null)[] | null;
  /** One for each element; null: the set does not count. */
  readonly elementPackets: Float64Array | null;
}

/**
 * Sets of addresses and ports. Asking loads no module of the kernel. Rejects with ERR_NETLINK or ERR_NETLINK_DECODE; whether anything happened is unknown
 * then.
 */
export interface IpsetAddon {
  ipsetNames(): Promise<readonly string[]>;
  /**
   * Does all of it in the order given, but for what it answers that the kernel refused. An error names the operation
   * (`index`), of elements which one (`element`), and the set in words. Loads ip_set and the types.
   */
  ipsetApply(operations: readonly IpsetOperation[]): Promise<Applied>;
  /** For each name, in the order given; null: there is no such set. Concurrent changes may leave out an element or repeat one. */
  ipsetList(names: readonly string[]): Promise<readonly (IpsetListing | null)[]>;
  /**
   * A whole number for each name, the same for the same set in whatever order it is listed, references and counts apart; 0: there is no such set.
   *
   * @param extent `headers`: by the number of elements, and not by which they are, which costs next to nothing.
   */
  ipsetDigests(names: readonly string[], extent: 'whole' | 'headers'): Promise<Float64Array>;
}
