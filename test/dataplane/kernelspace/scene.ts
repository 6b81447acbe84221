import type { HcnLoadBalancer } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** What tests of one family begin with, and what they look at. */

export function pods(name: string, ...addresses: readonly string[]): Row {
  return slice(
    name,
    addresses.map((each) => ({ address: each, node: each.startsWith('10.0.0.') ? 'me' : 'other' })),
  );
}

/** Of other nodes. */
export function pods6(...addresses: readonly string[]): Row {
  return slice(
    'web',
    addresses.map((each) => ({ address: each, node: 'other' })),
    { name: 'web-ipv6' },
  );
}

export async function started(rows: readonly Row[] = [], rig = new Rig()): Promise<Rig> {
  rig.commit([...NODE_ROWS, ...rows]);
  await rig.sync();
  return rig;
}

/** By frontend: address or `node`, and port. */
export function loadBalancers({ kernel: { hns } }: Rig): Readonly<Record<string, HcnLoadBalancer>> {
  return Object.fromEntries(
    [...hns.loadBalancers.values()].map((each) => {
      const [vip = 'node'] = each.FrontendVIPs ?? [];
      return [`${vip}:${each.PortMappings?.[0]?.ExternalPort}`, each];
    }),
  );
}

/** Reads and changes that HNS was asked for while something was done. */
export async function costs(
  { kernel: { hns } }: Rig,
  work: () => Promise<unknown>,
): Promise<{ readonly reads: number; readonly changes: number }> {
  const before = { reads: hns.listed.length, changes: hns.changes };
  await work();
  return { reads: hns.listed.length - before.reads, changes: hns.changes - before.changes };
}

export const CLUSTER: readonly Row[] = [service('web'), pods('web', '10.0.1.1', '10.0.1.2')];

/** What removes the Service of {@link CLUSTER}. */
export const REF = { kind: 'Service', namespace: 'default', name: 'web' } as const;
