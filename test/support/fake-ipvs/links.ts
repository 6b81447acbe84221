import { addressBytes, addressFromBytes, addressLength, familyOf, type IPAddress } from '../../../src/base/ip.js';
import type { AddressOperation, LinkAddresses, RouteAddon, RouteChange } from '../../../src/native/contract.js';
import type { Applied } from '../../../src/native/errors.js';
import { KernelError } from '../fake-kernel/kernel-error.js';
import type { IpvsFaults } from './faults.js';

/** Links and addresses behind the addon's contract. The node's own addresses are on `eth0`. */
export class FakeLinks implements RouteAddon {
  readonly links = new Map<string, Set<IPAddress>>();
  readonly committed: (readonly AddressOperation[])[] = [];
  /** Links that take no address of IPv6, as a sysctl says. */
  private readonly withoutIPv6 = new Set<string>();
  private readonly watches = new Set<(change: RouteChange) => void>();

  constructor(
    private readonly faults: IpvsFaults,
    own: readonly IPAddress[],
  ) {
    this.links.set('eth0', new Set(own));
  }

  async linkAddresses(name: string): Promise<readonly Uint8Array[] | null> {
    await Promise.resolve();
    this.faults.list('link addresses');
    const addresses = this.links.get(name);
    return addresses === undefined ? null : [...addresses].reverse().map(addressBytes);
  }

  async allAddresses(): Promise<readonly LinkAddresses[]> {
    await Promise.resolve();
    this.faults.list('all addresses');
    return [...this.links].map(([link, addresses]) => {
      const pack = (family: 'IPv4' | 'IPv6'): Uint8Array =>
        Buffer.concat([...addresses].filter((address) => familyOf(address) === family).map(addressBytes));
      return { link, ipv4: pack('IPv4'), ipv6: pack('IPv6') };
    });
  }

  async linkEnsureDummy(name: string): Promise<boolean> {
    await Promise.resolve();
    if (this.links.has(name)) return false;
    this.links.set(name, new Set());
    return true;
  }

  async linkDelete(name: string): Promise<boolean> {
    await Promise.resolve();
    return this.links.delete(name);
  }

  async addressApply(link: string, operations: readonly AddressOperation[]): Promise<Applied> {
    await Promise.resolve();
    const held = this.links.get(link);
    if (held === undefined)
      throw new KernelError('ENODEV', 'address apply', { object: link, index: null, element: null });
    return this.faults.apply(operations, {
      call: 'address apply',
      committed: this.committed,
      sizeOf: ({ family, addresses }) => addresses.length / addressLength(family),
      placeOf: (operation, element) => ({ object: addressAt(operation, element), element }),
      change: (operation, element) => {
        const { type, family } = operation;
        if (type === 'add' && family === 'IPv6' && this.withoutIPv6.has(link)) return 'EACCES';
        return change(held, type, addressAt(operation, element));
      },
    });
  }

  /** As `net.ipv6.conf.LINK.disable_ipv6`: the link's addresses of IPv6 go, and none comes. */
  disableIPv6(link: string, disabled: boolean): void {
    if (!disabled) this.withoutIPv6.delete(link);
    else this.withoutIPv6.add(link);
    const held = this.links.get(link) ?? new Set();
    if (disabled) for (const address of held) if (familyOf(address) === 'IPv6') held.delete(address);
  }

  routeWatch(onChange: (change: RouteChange) => void): () => void {
    this.watches.add(onChange);
    return () => this.watches.delete(onChange);
  }

  /** Tells those who watch. */
  notify(change: RouteChange): void {
    for (const watch of this.watches) setImmediate(watch, change);
  }
}

function addressAt({ family, addresses }: AddressOperation, element: number): IPAddress {
  const length = addressLength(family);
  return addressFromBytes(addresses.subarray(element * length, (element + 1) * length));
}

function change(held: Set<IPAddress>, type: AddressOperation['type'], address: IPAddress): string | null {
  if (type === 'delete') return held.delete(address) ? null : 'EADDRNOTAVAIL';
  if (held.has(address)) return 'EEXIST';
  held.add(address);
  return null;
}
