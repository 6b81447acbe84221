import { endpointSize, packedKey } from '../../base/endpoint-list.js';
import { addressLength, type Family, type IPAddress } from '../../base/ip.js';
import type { NftChainListing, NftElementsListing, NftSetListing, NftTableListing } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';
import { unpackLocal } from './affinity/local-endpoints.js';
import { NO_ELEMENTS, type FrontendElements } from './frontend-elements.js';
import { packFrontend, shardOf, unpackFrontend, unpackSource, type PackedKey } from './keys.js';
import { ListedSlots } from './listing-slots.js';
import { SET, parseEndpointsMap } from './names.js';
import { declaredText } from './schema.js';
import { unpackAddress } from '../../base/pack-address.js';

/** An element of one of our sets that means nothing to us: it has to go. */
export interface UnexpectedElement {
  readonly set: string;
  readonly key: PackedKey;
}

/** The kernel's content, as far as it acknowledged or listed it. */
export interface HeldTable {
  /** Canonical text of every chain, see {@link chainText}. */
  readonly chains: ReadonlyMap<string, string>;
  /** Canonical declaration of every set and map. */
  readonly sets: ReadonlyMap<string, string>;
  /** Canonical declaration of every `ct timeout` object, and of other proxies' counters. */
  readonly objects: ReadonlyMap<string, string>;
  readonly frontends: ReadonlyMap<FrontendKey, FrontendElements>;
  readonly clusterAddresses: ReadonlyMap<IPAddress, true>;
  readonly hairpinAddresses: ReadonlyMap<IPAddress, true>;
  /** Frontends in {@link SET.staleFlows} and {@link SET.staleNodePortFlows}. */
  readonly staleFlows: ReadonlyMap<FrontendKey, true>;
  /** Unexpected elements, by names that have no meaning. */
  readonly unexpected: ReadonlyMap<string, UnexpectedElement>;
}

/** One that no other software has. */
export type ListedTable = {
  readonly [Field in keyof HeldTable]: HeldTable[Field] extends ReadonlyMap<infer Key, infer Value>
    ? Map<Key, Value>
    : never;
};

export function emptyTable(): ListedTable {
  return {
    chains: new Map(),
    sets: new Map(),
    objects: new Map(),
    frontends: new Map(),
    clusterAddresses: new Map(),
    hairpinAddresses: new Map(),
    staleFlows: new Map(),
    unexpected: new Map(),
  };
}

/** A chain as one comparable text: its hook, then a line per rule. */
export function chainText(chain: NftChainListing): string {
  return [chain.hook ?? '', ...chain.rules].join('\n');
}

/** Reads a listing of a table back into our terms. */
export function readListing(family: Family, listing: NftTableListing): ListedTable {
  const reader = new TableReader(family);
  for (const set of listing.sets) reader.readSet(set);
  return reader.finish(listing);
}

/** The same one set at a time. */
export class TableReader {
  private readonly sets = new Map<string, string>();
  private readonly reader: ListingReader;

  constructor(family: Family) {
    this.reader = new ListingReader(family);
  }

  readSet(set: NftSetListing): void {
    if (set.elements !== null) this.reader.readSet(set, set.elements);
    if (!isAnonymous(set)) this.sets.set(set.name, declaredText(set.name, set.declaration));
  }

  finish({ chains, objects }: Pick<NftTableListing, 'chains' | 'objects'>): ListedTable {
    const { reader, sets } = this;
    return {
      chains: new Map(chains.map((chain) => [chain.name, chainText(chain)])),
      sets,
      objects: new Map(objects.map(({ name, declaration }) => [name, declaration])),
      frontends: reader.frontends(),
      clusterAddresses: reader.clusterAddresses,
      hairpinAddresses: reader.hairpinAddresses,
      staleFlows: reader.staleFlows,
      unexpected: reader.unexpected,
    };
  }
}

/** A set written into a rule lives and dies with the rule and cannot be addressed by its name. */
function isAnonymous({ declaration }: NftSetListing): boolean {
  return / flags anonymous\b/.test(declaration);
}

/** Sets whose members have a property. */
const MEMBERS = new Map<string, 'rejected' | 'dropped' | 'datagramNodePort' | 'restricted'>([
  [SET.rejected, 'rejected'],
  [SET.rejectedNodePorts, 'rejected'],
  [SET.dropped, 'dropped'],
  [SET.droppedNodePorts, 'dropped'],
  [SET.datagramNodePorts, 'datagramNodePort'],
  [SET.restricted, 'restricted'],
]);

type Draft = { -readonly [Field in keyof FrontendElements]: FrontendElements[Field] };

class ListingReader {
  readonly clusterAddresses = new Map<IPAddress, true>();
  readonly hairpinAddresses = new Map<IPAddress, true>();
  readonly staleFlows = new Map<FrontendKey, true>();
  readonly unexpected = new Map<string, UnexpectedElement>();
  private readonly drafts = new Map<PackedKey, { readonly key: FrontendKey; readonly draft: Draft }>();

  constructor(private readonly family: Family) {}

  frontends(): Map<FrontendKey, FrontendElements> {
    const frontends = new Map<FrontendKey, FrontendElements>();
    for (const { key, draft } of this.drafts.values()) {
      if (draft.admitted.length > 1) draft.admitted = [...draft.admitted].sort();
      frontends.set(key, draft);
    }
    return frontends;
  }

  readSet(set: NftSetListing, elements: NftElementsListing): void {
    const member = MEMBERS.get(set.name);
    if (member !== undefined) {
      this.readMembers(set, elements, (draft) => (draft[member] = true));
      return;
    }
    switch (set.name) {
      case SET.frontends:
      case SET.nodePortFrontends:
        this.readVerdicts(set, elements, (draft, chain, comment) => {
          draft.chain = chain;
          draft.comment = comment;
        });
        return;
      case SET.sticky:
      case SET.stickyNodePorts:
        this.readVerdicts(set, elements, (draft, chain) => (draft.finds = chain));
        return;
      case SET.localSticky:
      case SET.localStickyNodePorts:
        this.readVerdicts(set, elements, (draft, chain) => (draft.findsLocal = chain));
        return;
      case SET.remembering:
      case SET.rememberingNodePorts:
        this.readVerdicts(set, elements, (draft, chain) => (draft.remembers = chain));
        return;
      case SET.stickyLocals:
        this.readStickyLocals(set, elements);
        return;
      case SET.admitted:
        this.readAdmitted(set, elements, addressLength(this.family) + 4, unpackSource);
        return;
      case SET.admittedAddresses:
        this.readAdmitted(set, elements, addressLength(this.family), (address) => address + address);
        return;
      case SET.clusterAddresses:
        for (const key of keysOf(set, elements)) this.clusterAddresses.set(unpackAddress(key), true);
        return;
      case SET.hairpin:
        this.readHairpin(set, elements);
        return;
      case SET.staleFlows:
      case SET.staleNodePortFlows:
        this.readStaleFlows(set, elements);
        return;
      default:
        this.readNumbered(set, elements);
    }
  }

  private readVerdicts(
    set: NftSetListing,
    elements: NftElementsListing,
    put: (draft: Draft, chain: string, comment: string | null) => void,
  ): void {
    // Few chains have very many elements: one text for each chain is kept, not one for each element.
    const targets = new Map<string, string>();
    let index = 0;
    for (const key of keysOf(set, elements)) {
      const verdict = elements.verdicts?.[index] ?? '';
      const comment = elements.comments?.[index] ?? null;
      const chain = targets.get(verdict) ?? targetOf(verdict);
      targets.set(verdict, chain);
      index++;
      this.edit(set, key, key, (draft) => {
        put(draft, chain, comment);
      });
    }
  }

  private readMembers(set: NftSetListing, elements: NftElementsListing, put: (draft: Draft) => void): void {
    for (const key of keysOf(set, elements)) this.edit(set, key, key, put);
  }

  private readAdmitted(
    set: NftSetListing,
    elements: NftElementsListing,
    size: number,
    rangeOf: (source: PackedKey) => PackedKey | null,
  ): void {
    const admitted = new Map<PackedKey, PackedKey[]>();
    for (const key of keysOf(set, elements)) {
      const range = rangeOf(key.slice(0, size));
      const frontend = key.slice(size);
      const ranges = admitted.get(frontend) ?? [];
      if (range === null || !this.tryEdit(frontend, () => admitted.set(frontend, ranges)))
        this.addUnexpected({ set: set.name, key });
      else ranges.push(range);
    }
    for (const [frontend, ranges] of admitted)
      this.tryEdit(frontend, (draft) => (draft.admitted = [...draft.admitted, ...ranges]));
  }

  private readHairpin(set: NftSetListing, elements: NftElementsListing): void {
    for (const key of keysOf(set, elements)) {
      const half = key.length / 2;
      if (key.slice(0, half) === key.slice(half)) this.hairpinAddresses.set(unpackAddress(key.slice(half)), true);
      else this.addUnexpected({ set: set.name, key });
    }
  }

  private readStaleFlows(set: NftSetListing, elements: NftElementsListing): void {
    for (const key of keysOf(set, elements)) {
      const frontend = unpackFrontend(this.family, key);
      if (frontend === null) this.addUnexpected({ set: set.name, key });
      else this.staleFlows.set(frontend, true);
    }
  }

  /** Sets that there are several of. */
  private readNumbered(set: NftSetListing, elements: NftElementsListing): void {
    const endpoints = parseEndpointsMap(set.name);
    if (endpoints !== null)
      this.readEndpoints(set, elements, endpoints.shard, endpoints.local ? 'localEndpoints' : 'endpoints');
  }

  private readStickyLocals(set: NftSetListing, elements: NftElementsListing): void {
    const locals = new Map<FrontendKey, PackedKey[]>();
    for (const packed of keysOf(set, elements)) {
      const local = unpackLocal(this.family, packed);
      if (local === null) {
        this.addUnexpected({ set: set.name, key: packed });
        continue;
      }
      const endpoints = locals.get(local.key) ?? [];
      endpoints.push(local.endpoint);
      locals.set(local.key, endpoints);
    }
    for (const [key, endpoints] of locals) {
      const sorted = endpoints.sort();
      this.tryEdit(packFrontend(key), (draft) => (draft.stickyLocals = sorted));
    }
  }

  private readEndpoints(
    set: NftSetListing,
    { count, keys, data }: NftElementsListing,
    shard: number | null,
    field: 'endpoints' | 'localEndpoints',
  ): void {
    if (data === null) return;
    const { keyLength, dataLength } = set;
    const size = endpointSize(this.family);
    if (keyLength % 4 !== 0 || dataLength % 4 !== 0 || dataLength < size) {
      // A map of other software by a name of ours.
      this.addAllUnexpected(set, [...keysOf(set, { count, keys })]);
      return;
    }
    const listed = new ListedSlots({ count, keys, keyLength, data, dataLength, size });
    for (const { owner, frontend, slots } of listed.frontends()) {
      const put = (draft: Draft): void => {
        draft[field] = slots;
      };
      const misplaced = shard !== null && shardOf(frontend) !== shard;
      if (misplaced || !this.tryEdit(frontend, put)) this.addAllUnexpected(set, listed.elementsOf(owner));
    }
    this.addAllUnexpected(set, listed.beyondLimit());
  }

  private addAllUnexpected(set: NftSetListing, keys: readonly PackedKey[]): void {
    for (const key of keys) this.addUnexpected({ set: set.name, key });
  }

  private addUnexpected(element: UnexpectedElement): void {
    this.unexpected.set(`${element.set} ${element.key}`, element);
  }

  private edit(set: NftSetListing, key: PackedKey, frontend: PackedKey, put: (draft: Draft) => void): void {
    if (!this.tryEdit(frontend, put)) this.addUnexpected({ set: set.name, key });
  }

  private tryEdit(frontend: PackedKey, put: (draft: Draft) => void): boolean {
    let found = this.drafts.get(frontend);
    if (found === undefined) {
      const key = unpackFrontend(this.family, frontend);
      if (key === null) return false;
      found = { key, draft: { ...NO_ELEMENTS } };
      this.drafts.set(frontend, found);
    }
    put(found.draft);
    return true;
  }
}

/** A verdict that is no goto keeps its spelling: no chain of ours has such a name, so it will be replaced. */
function targetOf(verdict = ''): string {
  return verdict.startsWith('goto ') ? verdict.slice('goto '.length) : verdict;
}

function* keysOf(
  set: NftSetListing,
  elements: Pick<NftElementsListing, 'count' | 'keys'>,
): IterableIterator<PackedKey> {
  for (let index = 0; index < elements.count; index++) {
    yield packedKey(elements.keys, index * set.keyLength, set.keyLength);
  }
}
