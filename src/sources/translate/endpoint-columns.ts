import { addressLength, type Family } from '../../base/ip.js';
import { packAddress, packDotted } from '../../base/pack-address.js';
import { specialAddressAt, type SpecialAddress } from '../../base/special-address.js';
import { READY, SERVING, TERMINATING } from '../../state/rows.js';

/** Behaviour EP-05: what is not said means ready, serving, not terminating. */
export function conditionFlags(
  ready: boolean | null | undefined,
  serving: boolean | null | undefined,
  terminating: boolean | null | undefined,
): number {
  return ((ready ?? true) ? READY : 0) | ((serving ?? true) ? SERVING : 0) | ((terminating ?? false) ? TERMINATING : 0);
}

const INITIAL_ENDPOINTS = 1000;

/**
 * The endpoints of one slice as its row has them: what a codec may give to the translator in place of the list, when there is nothing to say about any of
 * them. One is filled again and again; whoever keeps a column copies it.
 */
export class EndpointColumns {
  count = 0;
  /** Of every address. */
  family: Family = 'IPv4';
  private size = addressLength('IPv4');
  private addressRoom: Uint8Array = new Uint8Array(INITIAL_ENDPOINTS * addressLength('IPv6'));
  /** One byte each, in the first `count`: READY | SERVING | TERMINATING. */
  conditions: Uint8Array = new Uint8Array(INITIAL_ENDPOINTS);
  private readonly names: (string | null)[] = [];
  /** The zones that each is meant for. */
  readonly zones: (readonly string[])[] = [];
  /** The nodes that each is meant for. */
  readonly nodes: (readonly string[])[] = [];
  /** Whether any endpoint is meant for zones or nodes. */
  hinted = false;

  clear(family: Family): void {
    this.count = 0;
    this.family = family;
    this.size = addressLength(family);
    this.hinted = false;
  }

  /** 4 or 16 bytes each, network order. */
  copyAddresses(): Uint8Array {
    return this.addressRoom.slice(0, this.count * this.size);
  }

  /** The node of each; null where it names none. */
  copyNodeNames(): readonly (string | null)[] {
    return this.names.slice(0, this.count);
  }

  /** The address of the endpoint that is {@link add}ed next. False when it is none of the family. */
  packText(text: string): boolean {
    return packAddress(text, this.family, this.room(), this.count * this.size);
  }

  /** As {@link packText}, of a dotted IPv4 address only, from its characters. */
  packDotted(characters: Uint8Array, start: number, end: number): boolean {
    return packDotted(characters, start, end, this.room(), this.count * this.size);
  }

  /** What makes the address packed last one that no endpoint can have; null: nothing. */
  get special(): SpecialAddress | null {
    return specialAddressAt(this.addressRoom, this.count * this.size, this.family);
  }

  /**
   * Adds an endpoint whose address has been packed.
   *
   * @param nodeName a string that other endpoints of the node have too; null: it names none.
   */
  add(conditions: number, nodeName: string | null, zones: readonly string[], nodes: readonly string[]): void {
    const index = this.count++;
    this.conditions[index] = conditions;
    this.names[index] = nodeName;
    this.zones[index] = zones;
    this.nodes[index] = nodes;
    if (zones.length > 0 || nodes.length > 0) this.hinted = true;
  }

  private room(): Uint8Array {
    if (this.count === this.conditions.length) {
      this.addressRoom = doubled(this.addressRoom);
      this.conditions = doubled(this.conditions);
    }
    return this.addressRoom;
  }
}

function doubled(bytes: Uint8Array): Uint8Array {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}
