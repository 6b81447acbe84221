import type { IptablesFlavor, IptablesTable } from '../../native/contract.js';
import type { ChainFootprint, Footprint, IpvsFootprint, NftTableFootprint, OwnFootprint } from './footprint.js';

/** Which chains of one flavour are leftovers. */
export interface LeftoverChains {
  readonly isLeftover: (table: IptablesTable, chain: string) => boolean;
  readonly isPerService: (chain: string) => boolean;
  /** Whether rules of built-in chains lead there because of a proxy. */
  readonly isHooked: (chain: string) => boolean;
  /** The chain without which this one does nothing; null for none. */
  readonly companion: (chain: string) => string | null;
}

/** All that proxies leave in the kernel, less what the mode in force owns. */
export class Remains {
  private readonly chainFootprints: readonly ChainFootprint[];

  /** @param own null: kube-proxy and pointsman both leave this node. */
  constructor(
    private readonly all: readonly Footprint[],
    private readonly own: OwnFootprint | null,
  ) {
    this.chainFootprints = all.flatMap(({ chains }) => chains ?? []);
  }

  /** Whether virtual services wait for the end of their connections: only while a mode is in force, not with `--cleanup`. */
  get drains(): boolean {
    return this.own !== null;
  }

  get nftTables(): readonly NftTableFootprint[] {
    const held = this.own?.footprint.nftTables ?? [];
    return this.all.flatMap(({ nftTables }) => nftTables).filter(({ name }) => !held.some((own) => own.name === name));
  }

  get ipvs(): IpvsFootprint | null {
    if (this.own !== null && this.own.footprint.ipvs !== null) return null;
    return this.all.flatMap(({ ipvs }) => ipvs ?? [])[0] ?? null;
  }

  /** Whether a timeout policy is a leftover; null: none is. */
  get isPolicy(): ((name: string) => boolean) | null {
    const own = this.own?.footprint.isOwnPolicy;
    const tests = this.all.flatMap(({ isOwnPolicy }) => isOwnPolicy ?? []);
    return own !== undefined || tests.length === 0 ? null : (name) => tests.some((test) => test(name));
  }

  chainsIn(flavor: IptablesFlavor): LeftoverChains {
    const { chainFootprints } = this;
    // Chains that several modes have belong to the mode in force, in the flavour that it uses.
    const held = this.own?.flavor === flavor ? this.own.footprint.chains : null;
    return {
      isLeftover: (table, chain) =>
        held?.isOwn(table, chain) !== true && chainFootprints.some((footprint) => footprint.isOwn(table, chain)),
      isPerService: (chain) => chainFootprints.some((footprint) => footprint.isPerService(chain)),
      isHooked: (chain) => chainFootprints.some(({ hooked }) => hooked.has(chain)),
      companion: (chain) => chainFootprints.flatMap(({ companions }) => companions.get(chain) ?? [])[0] ?? null,
    };
  }
}
