import type { Family } from '../../base/ip.js';
import type { IptablesFlavor, NativeAddon } from '../../native/contract.js';
import { Turns } from '../turns.js';
import { listedDestinations, sameDestinations } from './destinations.js';
import { sameAddresses, virtualOf, type Desired } from './desired.js';
import type { ServiceKey } from './frontends.js';
import { differentElements, differentServices, type Ledgers } from './ledgers.js';
import { listAddresses, listSets, proxysOf, stateOf, type Ownership, type Traces } from './listing.js';
import { SET_ROLES, setName, type SetRole } from './names.js';
import type { RuleWriter } from './rule-writer.js';
import { Seen, type Matter } from './seen.js';
import type { Timeouts } from './timeouts.js';
import { nameService } from './wire.js';

export interface ComparisonParts {
  readonly addon: Pick<NativeAddon, 'ipvs' | 'ipset' | 'route' | 'nftables'>;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  readonly ledgers: Ledgers;
  readonly desired: Pick<Desired, 'ownAddresses'>;
  /** Null: another family's. */
  readonly timeouts: Pick<Timeouts, 'differ'> | null;
  readonly rules: Pick<RuleWriter, 'version' | 'list' | 'repairs'>;
  readonly ownership: Ownership;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  /** Waits until nothing changes the kernel; answers a mark of that moment, or null when it is not known what the kernel holds. */
  readonly quiet: () => Promise<number | null>;
  /** Whether nothing has begun to change the kernel since a mark. */
  readonly isQuiet: (since: number) => boolean;
}

/** Shares of the time that looking may take, of one family: at what costs little, and at everything. */
const GLANCE_SHARE = 0.02;
const WHOLE_SHARE = 0.01;
/** Virtual services whose destinations are looked at together: a sync that begins meanwhile has them looked at again. */
const TOGETHER = 100;
const ATTEMPTS = 3;

/**
 * Compares beside syncs what the kernel holds with what it acknowledged. The kernel tells of no change to virtual services and sets, so it is looked again and
 * again, by digests: only what has another one than when it was last seen to be right is listed.
 */
export class Comparison {
  private readonly services: Seen<'services'>;
  private readonly sizes: Seen<SetRole>;
  private readonly sets: Seen<SetRole>;
  private readonly destinations: Seen<ServiceKey>;
  private readonly rules: Seen<'rules'>;
  private readonly glances: Turns;
  private readonly wholes: Turns;
  private underWay: Promise<boolean> | null = null;
  /** A look at everything that begins after the one under way. */
  private next: Promise<boolean> | null = null;

  constructor(private readonly parts: ComparisonParts) {
    this.services = new Seen(this.serviceMatter());
    this.sizes = new Seen(this.setMatter('headers'));
    this.sets = new Seen(this.setMatter('whole'));
    this.destinations = new Seen(this.destinationMatter());
    this.rules = new Seen(this.ruleMatter());
    this.glances = new Turns(parts.now, GLANCE_SHARE);
    this.wholes = new Turns(parts.now, WHOLE_SHARE);
  }

  /** As much as is due: everything, or virtual services, sizes of sets and rules, or nothing. */
  async glance(): Promise<boolean> {
    // Of two at once the second would find nothing else.
    if (this.underWay !== null) return false;
    if (this.wholes.isDue) return await this.whole();
    return this.glances.isDue && (await this.alone(() => this.glances.take(() => this.atLeast())));
  }

  /** Everything, as it is from now on: what is under way may have looked before, or at less. Whether something differs. */
  whole(): Promise<boolean> {
    if (this.underWay === null && this.next === null) return this.everything();
    return (this.next ??= this.everythingNext());
  }

  private async everythingNext(): Promise<boolean> {
    // A failure is told to whoever asked for it.
    while (this.underWay !== null) await this.underWay.catch(() => false);
    this.next = null;
    return await this.everything();
  }

  private everything(): Promise<boolean> {
    return this.alone(() => this.wholes.take(async () => (await this.atLeast()) || (await this.rest())));
  }

  /** Addresses alone. */
  addresses(): Promise<boolean> {
    return this.undisturbed(async () => {
      const { addon, family, ledgers, desired } = this.parts;
      const held = ledgers.addresses.acknowledged;
      const { linked, own } = await listAddresses(addon, family);
      return !sameAddresses(linked, new Set(held.keys())) || !sameAddresses(own, desired.ownAddresses);
    });
  }

  private async alone(compare: () => Promise<boolean>): Promise<boolean> {
    try {
      return await (this.underWay = compare());
    } finally {
      this.underWay = null;
    }
  }

  /** What costs little in a large cluster too. */
  private async atLeast(): Promise<boolean> {
    return (
      (await this.undisturbed(() => this.services.differ(['services']))) ||
      (await this.undisturbed(() => this.sizes.differ(SET_ROLES))) ||
      (await this.undisturbed(() => this.rules.differ(['rules'])))
    );
  }

  private async rest(): Promise<boolean> {
    if ((await this.addresses()) || (await this.undisturbed(() => this.sets.differ(SET_ROLES)))) return true;
    const { ledgers, timeouts } = this.parts;
    if ((await timeouts?.differ()) === true) return true;
    const held = ledgers.destinations.acknowledged;
    const keys = [...held.keys()];
    this.destinations.keep(held);
    for (let at = 0; at < keys.length; at += TOGETHER) {
      const some = keys.slice(at, at + TOGETHER);
      if (await this.undisturbed(() => this.destinations.differ(some.filter((key) => held.has(key))))) return true;
    }
    return false;
  }

  /** What differs while a sync changes it says nothing. Where syncs leave no time the next look has to find it. */
  private async undisturbed(compare: () => Promise<boolean>): Promise<boolean> {
    const { quiet, isQuiet } = this.parts;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const mark = await quiet();
      if (mark === null) return false;
      const differs = await compare();
      if (isQuiet(mark)) return differs;
    }
    return false;
  }

  private serviceMatter(): Matter<'services'> {
    const { addon, family, ledgers, ownership } = this.parts;
    return {
      version: () => ledgers.services.version,
      digests: async () => [await addon.ipvs.ipvsServicesDigest(family)],
      differ: async () => {
        const listed = proxysOf(await addon.ipvs.ipvsServices(family), this.traces(), ownership);
        const held = new Map(listed.map(({ key, service }) => [key, stateOf(service)]));
        return differentServices(ledgers, held).length > 0;
      },
    };
  }

  private traces(): Traces {
    const { ledgers, desired } = this.parts;
    return {
      own: desired.ownAddresses,
      linked: ledgers.addresses.acknowledged,
      names: (role, key) => ledgers.elements[role].acknowledged.has(key),
    };
  }

  private setMatter(extent: 'headers' | 'whole'): Matter<SetRole> {
    const { addon, family, ledgers } = this.parts;
    return {
      version: (role) => ledgers.elements[role].version,
      digests: (roles) =>
        addon.ipset.ipsetDigests(
          roles.map((role) => setName(family, role)),
          extent,
        ),
      differ: async (roles) => {
        const { elements, missing, wrong } = await listSets(addon, family, roles);
        if (missing.length + wrong.length > 0) return true;
        return differentElements(family, ledgers, elements, roles).length > 0;
      },
    };
  }

  private destinationMatter(): Matter<ServiceKey> {
    const { addon, family, ledgers } = this.parts;
    return {
      version: (key) => ledgers.destinations.acknowledged.get(key),
      digests: (keys) => addon.ipvs.ipvsDestinationsDigests(keys.map((key) => nameService(virtualOf(key)))),
      differ: async (keys) => {
        const listed = await addon.ipvs.ipvsDestinations(keys.map((key) => nameService(virtualOf(key))));
        return keys.some((key, index) => {
          const [known, found] = [ledgers.destinations.acknowledged.get(key), listed[index]];
          return (
            known !== undefined && found !== undefined && !sameDestinations(known, listedDestinations(family, found))
          );
        });
      },
    };
  }

  private ruleMatter(): Matter<'rules'> {
    const { addon, flavor, rules } = this.parts;
    return {
      version: () => rules.version,
      // x_tables numbers no changes: those rules are listed each time.
      digests: async () => [flavor === 'nft' ? await addon.nftables.nftGeneration() : NaN],
      differ: async () => rules.repairs(await rules.list()).length > 0,
    };
  }
}
