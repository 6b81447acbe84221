import type { Family } from '../../base/ip.js';
import type { IptablesFlavor, NativeAddon } from '../../native/contract.js';
import { listedDestinations, sameDestinations } from './destinations.js';
import { sameAddresses, virtualOf, type Desired } from './desired.js';
import type { ServiceKey } from './frontends.js';
import { differentElements, differentServices, type Ledgers } from './ledgers.js';
import { listAddresses, listSets, proxysOf, stateOf, type Ownership, type Traces } from './listing.js';
import { SET_ROLES, setName, type SetRole } from './names.js';
import type { RuleWriter } from './rule-writer.js';
import { DigestCache, type DigestSource } from './digest-cache.js';
import type { Timeouts } from './timeouts.js';
import { nameService } from './wire.js';

interface ComparisonParts {
  readonly addon: Pick<NativeAddon, 'ipvs' | 'ipset' | 'route' | 'nftables'>;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  readonly ledgers: Ledgers;
  readonly desired: Pick<Desired, 'ownAddresses'>;
  /** Null: another family's. */
  readonly timeouts: Pick<Timeouts, 'differ'> | null;
  readonly rules: Pick<RuleWriter, 'version' | 'list' | 'repairs'>;
  readonly ownership: Ownership;
}

/** Virtual services whose destinations are compared together: a sync that begins meanwhile has them compared again. */
const TOGETHER = 100;

/**
 * Compares beside syncs what the kernel holds with what it acknowledged. The kernel notifies of no change to virtual
 * services and sets, so they are polled by digests. Only objects whose digest changed since they were last right are listed.
 */
export class Comparison {
  private readonly services: DigestCache<'services'>;
  private readonly sizes: DigestCache<SetRole>;
  private readonly sets: DigestCache<SetRole>;
  private readonly destinations: DigestCache<ServiceKey>;
  private readonly rules: DigestCache<'rules'>;

  constructor(private readonly parts: ComparisonParts) {
    this.services = new DigestCache(this.serviceDigests());
    this.sizes = new DigestCache(this.setDigests('headers'));
    this.sets = new DigestCache(this.setDigests('whole'));
    this.destinations = new DigestCache(this.destinationDigests());
    this.rules = new DigestCache(this.ruleDigests());
  }

  /** The comparisons that cost little in a large cluster too, one at a time. */
  *little(): IterableIterator<() => Promise<boolean>> {
    yield () => this.services.differ(['services']);
    yield () => this.sizes.differ(SET_ROLES);
    yield () => this.rules.differ(['rules']);
  }

  *everything(): IterableIterator<() => Promise<boolean>> {
    yield* this.little();
    yield () => this.addresses();
    yield () => this.sets.differ(SET_ROLES);
    const { ledgers, timeouts } = this.parts;
    if (timeouts !== null) yield () => timeouts.differ();
    const held = ledgers.destinations.acknowledged;
    const keys = [...held.keys()];
    this.destinations.keep(held);
    for (let at = 0; at < keys.length; at += TOGETHER) {
      const some = keys.slice(at, at + TOGETHER);
      yield () => this.destinations.differ(some.filter((key) => held.has(key)));
    }
  }

  async addresses(): Promise<boolean> {
    const { addon, family, ledgers, desired } = this.parts;
    const held = ledgers.addresses.acknowledged;
    const { linked, own } = await listAddresses(addon, family);
    return !sameAddresses(linked, new Set(held.keys())) || !sameAddresses(own, desired.ownAddresses);
  }

  private serviceDigests(): DigestSource<'services'> {
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

  private setDigests(extent: 'headers' | 'whole'): DigestSource<SetRole> {
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

  private destinationDigests(): DigestSource<ServiceKey> {
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

  private ruleDigests(): DigestSource<'rules'> {
    const { addon, flavor, rules } = this.parts;
    return {
      version: () => rules.version,
      // x_tables numbers no changes: those rules are listed each time.
      digests: async () => [flavor === 'nft' ? await addon.nftables.nftGeneration() : NaN],
      differ: async () => rules.repairs(await rules.list()).length > 0,
    };
  }
}
