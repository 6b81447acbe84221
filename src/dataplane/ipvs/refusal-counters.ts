import type { Family } from '../../base/ip.js';
import type {
  IpsetCreation,
  IpsetListing,
  IpsetOperation,
  IptablesFlavor,
  NativeAddon,
} from '../../native/contract.js';
import { COUNTER_ROLES, counterName } from './names.js';
import type { IpvsMessage } from './print.js';

export interface RefusalCountersParts {
  readonly addon: Pick<NativeAddon, 'ipset' | 'iptables'>;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  readonly onMessage?: (message: IpvsMessage) => void;
}

/** The most refused frontends that are counted for each reason. Frontends beyond are refused without being counted. */
export const MOST_COUNTED = 65_536;

/** The sets by which rules count refused or dropped packets. Packets fill them; comparisons leave their elements out. */
export class RefusalCounters {
  constructor(private readonly parts: RefusalCountersParts) {}

  /** Makes those that are missing, and answers whether rules may name them: nothing but the counts depends on it. */
  async prepare(): Promise<boolean> {
    const { addon, family, onMessage } = this.parts;
    const wanted = counterNames(family).map((name) => creation(family, name));
    try {
      const listings = await addon.ipset.ipsetList(wanted.map(({ name }) => name));
      const operations = wanted.flatMap((set, index): readonly IpsetOperation[] => {
        const listing = listings[index] ?? null;
        const create = { type: 'create', set } as const;
        if (listing === null) return [create];
        return isUsable(listing, set) ? [] : [{ type: 'destroy', name: set.name }, create];
      });
      if (operations.length === 0) return true;
      onMessage?.({ type: 'sets', operations });
      const { refused } = await addon.ipset.ipsetApply(operations);
      return refused.length === 0;
    } catch {
      return false;
    }
  }

  /** The names of existing sets. */
  async names(): Promise<readonly string[]> {
    const { addon, family } = this.parts;
    const names = counterNames(family);
    const digests = await addon.ipset.ipsetDigests(names, 'headers');
    return names.filter((_, index) => digests[index] !== 0);
  }
}

export const COUNTED = 'hash:ip,port';

export function counterNames(family: Family): readonly string[] {
  return COUNTER_ROLES.map((role) => counterName(family, role));
}

function creation(family: Family, name: string): IpsetCreation {
  return {
    name,
    type: COUNTED,
    family,
    hashSize: 64,
    maxElements: MOST_COUNTED,
    comments: false,
    counters: true,
    ports: null,
  };
}

function isUsable({ type, family, plain, counters }: IpsetListing, wanted: IpsetCreation): boolean {
  return type === wanted.type && family === wanted.family && plain && counters;
}
