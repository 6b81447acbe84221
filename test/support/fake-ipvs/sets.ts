import { addressLength } from '../../../src/base/ip.js';
import { protocolNumber, parseProtocol } from '../../../src/base/protocol.js';
import {
  IPSET_ELEMENT,
  type IpsetAddon,
  type IpsetCreation,
  type IpsetListing,
  type IpsetName,
  type IpsetOperation,
} from '../../../src/native/contract.js';
import type { Applied } from '../../../src/native/errors.js';
import type { Traveller } from '../fake-iptables/packet.js';
import { digestOf } from './digest.js';
import type { IpvsFaults } from './faults.js';

interface FakeSet {
  readonly creation: IpsetCreation;
  /** Comments by packed element. */
  readonly elements: Map<string, string>;
  /** Packets by packed element, where they are counted. */
  readonly packets: Map<string, number>;
}

/** ipset behind the addon's contract. */
export class FakeSets implements IpsetAddon {
  readonly sets = new Map<string, FakeSet>();
  readonly committed: (readonly IpsetOperation[])[] = [];

  /** @param used names of sets that rules have. */
  constructor(
    private readonly faults: IpvsFaults,
    private readonly used: () => ReadonlySet<string>,
  ) {}

  async ipsetNames(): Promise<readonly string[]> {
    await Promise.resolve();
    return [...this.sets.keys()];
  }

  async ipsetApply(operations: readonly IpsetOperation[]): Promise<Applied> {
    await Promise.resolve();
    return this.faults.apply(operations, {
      call: 'ipset apply',
      committed: this.committed,
      sizeOf,
      placeOf: (operation, element) => ({
        object: nameOf(operation),
        element: 'elements' in operation ? element : null,
      }),
      change: (operation, element) => this.apply(operation, element),
    });
  }

  async ipsetList(names: readonly string[]): Promise<readonly (IpsetListing | null)[]> {
    await Promise.resolve();
    this.faults.list('ipset list');
    const used = this.used();
    return names.map((name) => {
      const set = this.sets.get(name);
      if (set === undefined) return null;
      const elements = [...set.elements].reverse();
      return {
        ...set.creation,
        plain: true,
        references: used.has(name) ? 1 : 0,
        elements: Buffer.from(elements.map(([key]) => key).join(''), 'latin1'),
        elementComments: elements.map(([, comment]) => (comment === '' ? null : comment)),
        elementPackets: set.creation.counters
          ? Float64Array.from(elements, ([key]) => set.packets.get(key) ?? 0)
          : null,
      };
    });
  }

  async ipsetDigests(names: readonly string[], extent: 'whole' | 'headers'): Promise<Float64Array> {
    await Promise.resolve();
    this.faults.list('ipset digests');
    return Float64Array.from(names, (name) => {
      const set = this.sets.get(name);
      if (set === undefined) return 0;
      const { creation, elements } = set;
      const held = extent === 'headers' ? [String(elements.size)] : [...elements].map((each) => JSON.stringify(each));
      return digestOf([JSON.stringify(creation), ...held]);
    });
  }

  /** A packet that a rule counts in a set. */
  count(name: string, key: string): void {
    const set = this.sets.get(name);
    if (set?.creation.counters !== true) throw new Error(`there is no set ${name} that counts`);
    if (set.elements.size >= set.creation.maxElements && !set.elements.has(key)) return;
    set.elements.set(key, '');
    set.packets.set(key, (set.packets.get(key) ?? 0) + 1);
  }

  /** As a rule's match asks. */
  has(name: string, directions: readonly string[], packet: Traveller): boolean {
    const set = this.sets.get(name);
    if (set === undefined) throw new Error(`there is no set ${name}`);
    const { type } = set.creation;
    const address = (at: number): string => (directions[at] === 'src' ? packet.source : packet.destination);
    const protocol = parseProtocol(packet.protocol.toUpperCase());
    const portAndProtocol = packet.port + String.fromCharCode(protocol === null ? 0 : protocolNumber(protocol));
    switch (type) {
      case 'hash:ip':
        return set.elements.has(address(0));
      case 'hash:ip,port':
        return set.elements.has(address(0) + portAndProtocol);
      case 'bitmap:port':
        return set.elements.has(packet.port);
      case 'hash:ip,port,ip':
        return set.elements.has(address(0) + portAndProtocol + address(2));
      case 'hash:ip,port,net':
        return prefixesOf(address(2)).some((prefix) => set.elements.has(address(0) + portAndProtocol + prefix));
      case 'hash:net,net': {
        const length = String.fromCharCode(address(0).length * 8);
        return set.elements.has(address(0) + address(1) + length + length);
      }
    }
  }

  /** Null: done. */
  private apply(operation: IpsetOperation, element: number): string | null {
    switch (operation.type) {
      case 'create':
        if (this.sets.has(operation.set.name)) return 'EEXIST';
        this.sets.set(operation.set.name, { creation: operation.set, elements: new Map(), packets: new Map() });
        return null;
      case 'destroy':
        if (!this.sets.has(operation.name)) return 'ENOENT';
        if (this.used().has(operation.name)) return 'EBUSY';
        this.sets.delete(operation.name);
        return null;
      case 'flush':
        this.sets.get(operation.name)?.elements.clear();
        this.sets.get(operation.name)?.packets.clear();
        return this.sets.has(operation.name) ? null : 'ENOENT';
      case 'add':
      case 'delete':
        return this.applyElement(operation, element);
    }
  }

  private applyElement(
    operation: Extract<IpsetOperation, { readonly type: 'add' | 'delete' }>,
    element: number,
  ): string | null {
    const set = this.sets.get(operation.set.name);
    if (set === undefined) return 'ENOENT';
    const { type, family, maxElements, comments } = set.creation;
    if (type !== operation.set.type || family !== operation.set.family) throw new TypeError('a set of another type');
    const size = elementSize(operation.set);
    const key = Buffer.from(operation.elements.subarray(element * size, (element + 1) * size)).toString('latin1');
    if (operation.type === 'delete') {
      set.elements.delete(key);
      return null;
    }
    if (type !== 'bitmap:port' && set.elements.size >= maxElements && !set.elements.has(key)) return 'ENOSPC';
    if (type === 'hash:ip,port,net' && key.endsWith('\0')) return 'EINVAL';
    if (family !== null && /^\0*$/.test(key.slice(0, addressLength(family)))) return 'EINVAL';
    const comment = operation.comments?.[element] ?? null;
    if (comment !== null && !comments) return 'EINVAL';
    set.elements.set(key, comment ?? '');
    return null;
  }
}

function sizeOf(operation: IpsetOperation): number {
  return 'elements' in operation ? operation.elements.length / elementSize(operation.set) : 1;
}

function elementSize({ type, family }: IpsetName): number {
  const { addresses, others } = IPSET_ELEMENT[type];
  return addresses * addressLength(family ?? 'IPv4') + others;
}

function nameOf(operation: IpsetOperation): string {
  return 'set' in operation ? operation.set.name : operation.name;
}

/** A packed address under every length of prefix, with the length behind it. */
function prefixesOf(address: string): readonly string[] {
  const bytes = Buffer.from(address, 'latin1');
  return Array.from({ length: bytes.length * 8 }, (_, index) => {
    const length = index + 1;
    const masked = bytes.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, length - at * 8))));
    return Buffer.from(masked).toString('latin1') + String.fromCharCode(length);
  });
}
