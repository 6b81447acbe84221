import { packClientKey, packFrontend } from '../../../src/dataplane/nftables/keys.js';
import type { FrontendKey } from '../../../src/plan/types.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** Services of which the kernel refuses some. */

export const STILL_TO_REMOVE = /flows of 10\.96\.0\.9:53\/UDP are still to be removed/;
export const UDP = [{ port: 53, protocol: 'UDP' }] as const;

export function address(number: number): string {
  return `10.96.${number >> 8}.${number & 255}`;
}

export function keyOf(number: number): FrontendKey {
  return `${address(number)}:80/TCP`;
}

export function rowsOf(number: number, endpoints = 2, fields: ServiceText = {}): readonly Row[] {
  const name = `s${number}`;
  return [
    service(name, { clusterIPs: [address(number)], ...fields }),
    slice(
      name,
      Array.from({ length: endpoints }, (_, index) => ({ address: `10.7.${number & 255}.${index + 1}`, node: 'me' })),
      fields.ports === UDP ? { ports: UDP } : {},
    ),
  ];
}

export function gone(number: number): RowRef {
  return { kind: 'Service', namespace: 'default', name: `s${number}` };
}

export async function started(count: number, more: readonly Row[] = []): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, ...Array.from({ length: count }, (_, number) => rowsOf(number)).flat(), ...more]);
  await rig.sync();
  return rig;
}

/** From now on the kernel refuses every element of these frontends, and no other. */
export function refuse(rig: Rig, keys: Iterable<FrontendKey>): void {
  const ends = [...keys].map((key) => ({
    nodePort: key.startsWith('nodeport:'),
    ends: [packFrontend(key), packClientKey('IPv4', key)],
  }));
  rig.kernel.faults.refuses = (what, packed) =>
    packed !== '' &&
    !/hairpin|cluster-addresses|clients-/.test(what) &&
    ends.some(({ nodePort, ends: [end = '', clientEnd = ''] }) =>
      nodePort && what.includes('nodeport') ? packed.endsWith(end) : packed.endsWith(clientEnd),
    );
}

/** Lines of the difference that are not about these frontends, and not about flows that nobody was asked to remove yet. */
export async function others(rig: Rig, keys: Iterable<FrontendKey>): Promise<readonly string[]> {
  const refused = [...keys];
  const lines = (await rig.difference()).filter((line) => !line.endsWith('are still to be removed'));
  // Addresses stay as long as a frontend that uses them.
  const ofAddresses = /^\+ IPv4 (?:cluster-address|hairpin)/;
  return lines.filter((line) => !refused.some((key) => line.includes(key)) && !ofAddresses.test(line));
}

/** Until nothing fails; how many syncs failed before. */
export async function settle(rig: Rig): Promise<number> {
  for (let failed = 0; ; failed++) {
    if (failed === 20) throw new Error('it never settles');
    const report = await rig.sync().catch(() => null);
    if (report !== null) return failed;
  }
}

export async function quarantined(rig: Rig): Promise<readonly FrontendKey[]> {
  return (await rig.sync()).quarantined.map(({ frontend }) => frontend).sort();
}
