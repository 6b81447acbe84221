import { addressLength, type Family } from '../../base/ip.js';
import { packedKey } from '../../base/endpoint-list.js';
import { packAddress, packDotted } from '../../base/pack-address.js';
import { PackedNames } from '../../base/packed-names.js';
import { specialAddressAt, type SpecialAddress } from '../../base/special-address.js';
import type { EndpointSliceRow } from '../../state/rows.js';
import type { Interner } from './intern.js';

type Columns = Pick<
  EndpointSliceRow,
  'count' | 'addresses' | 'conditions' | 'nodeNames' | 'zoneHints' | 'nodeHints' | 'zoneNames' | 'zones' | 'pods'
>;

const INITIAL_ENDPOINTS = 1000;
/** A zone's place is one character. */
const MOST_ZONES = 0xffff;
const NO_HINTS: readonly string[] = [];

/** Endpoints as their slice's row has them, while they come in. One is filled again and again; {@link copy} takes out what has come. */
export class EndpointColumns {
  private count = 0;
  /** The family of every address. */
  private family: Family = 'IPv4';
  private size = addressLength('IPv4');
  private addresses: Uint8Array = new Uint8Array(INITIAL_ENDPOINTS * addressLength('IPv6'));
  private conditions: Uint8Array = new Uint8Array(INITIAL_ENDPOINTS);
  private nodeNames: (string | null)[] = [];
  private zones: (readonly string[])[] = [];
  private nodes: (readonly string[])[] = [];
  private hinted = false;
  /** Zones that endpoints are in, each with its place + 1. */
  private zoneNames = new Map<string, number>();
  /** For each endpoint the place of its zone + 1. */
  private zonePlaces: number[] = [];
  /** Belongs to the endpoint that is added next; it comes after the address. */
  readonly pods = new PackedNames();

  clear(family: Family): void {
    if (this.hinted || this.count > INITIAL_ENDPOINTS) this.release();
    this.count = 0;
    this.family = family;
    this.size = addressLength(family);
    this.hinted = false;
    this.pods.clear();
    if (this.zoneNames.size > 0) this.zoneNames = new Map();
  }

  /** The address of the endpoint that is {@link add}ed next. False when it is none of the family. */
  packText(text: string): boolean {
    this.pods.none();
    return packAddress(text, this.family, this.room(), this.count * this.size);
  }

  /** As {@link packText}, from the address's characters. False also for one that is not written as four decimal octets. */
  packDotted(characters: Uint8Array, start: number, end: number): boolean {
    this.pods.none();
    return this.family === 'IPv4' && packDotted(characters, start, end, this.room(), this.count * this.size);
  }

  /** What makes the address packed last one that no endpoint can have; null: nothing. */
  get special(): SpecialAddress | null {
    return specialAddressAt(this.addresses, this.count * this.size, this.family);
  }

  /** Adds an endpoint whose address has been packed. */
  add(
    conditions: number,
    nodeName: string | null,
    zone: string,
    zones: readonly string[],
    nodes: readonly string[],
  ): void {
    const index = this.count++;
    this.conditions[index] = conditions;
    this.nodeNames[index] = nodeName;
    this.zones[index] = zones;
    this.nodes[index] = nodes;
    this.pods.add();
    this.zonePlaces[index] = zone === '' ? 0 : this.placeOf(zone);
    if (zones.length > 0 || nodes.length > 0) this.hinted = true;
  }

  copy(names: Interner): Columns {
    const { count, hinted } = this;
    return {
      count,
      addresses: packedKey(this.addresses, 0, count * this.size),
      conditions: names.column(this.conditions, count),
      nodeNames: this.nodeNames.slice(0, count),
      zoneHints: hinted ? hintColumn(this.zones, count, names) : null,
      nodeHints: hinted ? hintColumn(this.nodes, count, names) : null,
      zoneNames: this.zoneNames.size === 0 ? NO_HINTS : names.list([...this.zoneNames.keys()]),
      zones: this.zoneNames.size === 0 ? '' : this.zoneColumn(count, names),
      pods: this.pods.text(),
    };
  }

  /** Keeps nothing of a slice that has come: it may have been large, or have had many hints. */
  private release(): void {
    if (this.conditions.length > INITIAL_ENDPOINTS) {
      this.addresses = new Uint8Array(INITIAL_ENDPOINTS * addressLength('IPv6'));
      this.conditions = new Uint8Array(INITIAL_ENDPOINTS);
    }
    this.nodeNames = [];
    this.zones = [];
    this.nodes = [];
    this.zonePlaces = [];
  }

  private placeOf(zone: string): number {
    const known = this.zoneNames.get(zone);
    if (known !== undefined) return known;
    const place = this.zoneNames.size + 1;
    if (place > MOST_ZONES) return 0;
    this.zoneNames.set(zone, place);
    return place;
  }

  /** Shared where all are in one zone: else hardly two slices have the same. */
  private zoneColumn(count: number, names: Interner): string {
    let column = '';
    for (let index = 0; index < count; index++) column += String.fromCharCode(this.zonePlaces[index] ?? 0);
    return this.zoneNames.size === 1 ? names.text(column) : column;
  }

  private room(): Uint8Array {
    if (this.count === this.conditions.length) {
      this.addresses = doubled(this.addresses);
      this.conditions = doubled(this.conditions);
    }
    return this.addresses;
  }
}

function doubled(bytes: Uint8Array): Uint8Array {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}

/** No column at all unless an endpoint has some. */
function hintColumn(
  hints: (readonly string[])[],
  count: number,
  names: Interner,
): readonly (readonly string[])[] | null {
  let column: (readonly string[])[] | null = null;
  for (let index = 0; index < count; index++) {
    const named = hints[index] ?? NO_HINTS;
    if (named.length === 0) continue;
    column ??= new Array<readonly string[]>(count).fill(NO_HINTS);
    // Written back as well: what stays there until the next slice must not be a window on a whole file.
    column[index] = hints[index] = names.list(named);
  }
  return column;
}
