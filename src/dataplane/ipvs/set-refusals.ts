import { parseAddress, type Family } from '../../base/ip.js';
import { parseProtocol } from '../../base/protocol.js';
import type { IpsetListing, IpsetOperation } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import type { RefusedPackets } from '../contract.js';
import { parseRule } from '../xtables/listing.js';
import { RefusedByRules, type Refusal } from '../xtables/refused-by-rules.js';
import { serviceKey, unpackVirtual, type ElementKey, type ServiceKey } from './frontends.js';
import { CHAIN, COUNTER_ROLES, type CounterRole } from './names.js';
import { COUNTED, counterNames, MOST_COUNTED, type RefusalCountersParts } from './refusal-counters.js';
import { packedElements } from './wire.js';

const MEANING: Readonly<Record<CounterRole, Omit<Refusal, 'frontend'>>> = {
  noEndpoints: { verdict: 'refused', reason: 'no-endpoints' },
  noLocal: { verdict: 'dropped', reason: 'no-local-endpoints' },
  sourceRanges: { verdict: 'dropped', reason: 'source-range' },
};

/** Packets that were refused, by the sets in which rules count them. */
export class Refusals {
  /**
   * The node's own packets are translated when source ranges are checked. So no set knows their frontend, and each frontend
   * has rules of its own.
   */
  private readonly outgoing: RefusedByRules;
  /** The elements' counts at the first look, for another process; null: there was none yet. */
  private before: ReadonlyMap<string, number> | null = null;

  constructor(private readonly parts: RefusalCountersParts) {
    const { addon, family, flavor } = parts;
    this.outgoing = new RefusedByRules({ addon: addon.iptables, family, flavor, prefix: CHAIN.outGuard, refusalIn });
  }

  /**
   * @param frontendOf undefined: there is none any more.
   * @param restricted whether any has source ranges.
   */
  async read(
    frontendOf: (key: ServiceKey) => FrontendKey | undefined,
    restricted: boolean,
  ): Promise<readonly RefusedPackets[]> {
    const { addon, family } = this.parts;
    const listings = await addon.ipset.ipsetList(counterNames(family));
    const counts = COUNTER_ROLES.flatMap((role, index) => countsOf(family, role, listings[index] ?? null));
    const before = (this.before ??= new Map(counts.map(({ id, packets }) => [id, packets])));
    const rows = counts.flatMap(({ id, role, key, packets }): readonly RefusedPackets[] => {
      const frontend = frontendOf(serviceKey(unpackVirtual(family, key)));
      const more = packets - (before.get(id) ?? 0);
      return frontend === undefined || more <= 0 ? [] : [{ frontend, ...MEANING[role], packets: more }];
    });
    await this.makeRoom(listings);
    return restricted ? [...rows, ...(await this.outgoing.read((key) => frontendOf(key) !== undefined))] : rows;
  }

  /** Frontends that are gone stay in a set, so it is emptied long before it is full. */
  private async makeRoom(listings: readonly (IpsetListing | null)[]): Promise<void> {
    const { addon, onMessage } = this.parts;
    const operations = listings.flatMap((listing): readonly IpsetOperation[] =>
      (listing?.elementPackets?.length ?? 0) > MOST_COUNTED / 2 ? [{ type: 'flush', name: listing?.name ?? '' }] : [],
    );
    if (operations.length === 0) return;
    onMessage?.({ type: 'sets', operations });
    await addon.ipset.ipsetApply(operations);
    this.before = new Map();
  }
}

interface Count {
  readonly id: string;
  readonly role: CounterRole;
  readonly key: ElementKey;
  readonly packets: number;
}

function countsOf(family: Family, role: CounterRole, listing: IpsetListing | null): readonly Count[] {
  const { elements, elementPackets } = listing ?? {};
  if (!elements || !elementPackets) return [];
  const keys = packedElements(family, COUNTED, elements);
  return keys.map((key, at) => ({ id: `${role} ${key}`, role, key, packets: elementPackets[at] ?? 0 }));
}

/** The refusal of a frontend's rule in {@link CHAIN.outGuard}. */
function refusalIn(_: string, text: string): Refusal | null {
  const { protocol, originalDestination, originalPort, target } = parseRule(text);
  const address = parseAddress(originalDestination ?? '');
  const known = parseProtocol(protocol?.toUpperCase() ?? '');
  if (target !== 'DROP' || address === null || known === null || originalPort === null) return null;
  return { frontend: frontendKey(address, Number(originalPort), known), ...MEANING.sourceRanges };
}
