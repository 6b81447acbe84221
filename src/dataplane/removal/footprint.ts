import type { Family } from '../../base/ip.js';
import { DEFAULT_NODE_PORTS, type Protocol } from '../../base/protocol.js';
import type { IptablesFlavor, IptablesTable, NftCommand, NftFamily, NftTableListing } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';

/**
 * A mode's own objects in the kernel: those that it makes, and those that kube-proxy makes in the same mode, which it takes
 * over. Other modes remove them by this description alone.
 */
export interface Footprint {
  /** Tables of nf_tables, in each family. */
  readonly nftTables: readonly NftTableFootprint[];
  /** Null: none. */
  readonly chains: ChainFootprint | null;
  readonly ipvs: IpvsFootprint | null;
  /** Whether a timeout policy of conntrack is the mode's own. Absent: none is. */
  readonly isOwnPolicy?: (name: string) => boolean;
}

/** For a mode that only itself can clean up after. */
export const NO_FOOTPRINT: Footprint = { nftTables: [], chains: null, ipvs: null };

export interface NftTableFootprint {
  readonly name: string;
  /** Sets with notes of frontends that are gone and whose flows are still to be removed, once the table is removed. */
  readonly notes: readonly string[];
  /** @param listing with the elements of these sets. */
  readonly readNotes: (family: Family, listing: NftTableListing) => Promise<readonly FrontendKey[]>;
  /** Commands that remove our objects from the table when another proxy uses it, a transaction each; null when no other proxy uses it. */
  readonly removalFromShared: (
    where: { readonly family: NftFamily; readonly table: string },
    listing: NftTableListing,
  ) => Promise<readonly (readonly NftCommand[])[] | null>;
}

/** Chains of the iptables programs' tables, in either flavour. */
export interface ChainFootprint {
  isOwn(table: IptablesTable, chain: string): boolean;
  /** Chains of single Services and endpoints: in a large cluster nearly all. */
  isPerService(chain: string): boolean;
  /** Chains that rules of built-in chains lead to. */
  readonly hooked: ReadonlySet<string>;
  /** Chains that do nothing without another one, although no rule of theirs leads there. */
  readonly companions: ReadonlyMap<string, string>;
}

export interface IpvsFootprint {
  /** The link that holds the addresses of virtual services. */
  readonly link: string;
  /** The sets of both families. */
  readonly sets: ReadonlySet<string>;
  /** Those of them that have a protocol's node ports, one an element. */
  readonly portSets: ReadonlyMap<string, Protocol>;
  /** Those that have frontends by address, port and protocol. */
  readonly frontendSets: ReadonlySet<string>;
}

/** Whether a virtual service of the node at this port is a proxy's, as far as can be known. */
export function isUsualNodePort(port: number): boolean {
  return port >= DEFAULT_NODE_PORTS.first && port <= DEFAULT_NODE_PORTS.last;
}

/** The footprint of the mode in force. */
export interface OwnFootprint {
  readonly footprint: Footprint;
  /** The flavour its chains are in; null when it has none. Those of the other flavour are leftovers. */
  readonly flavor: IptablesFlavor | null;
}
