import { service, slice } from '../../support/rows.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

export function web(index: number): Row {
  return service(`web-${index}`, { clusterIPs: [`10.96.${index >> 8}.${index & 0xff}`] });
}

export function endpoints(index: number, count: number): Row {
  const each = (number: number): string => `10.${index & 0xff}.${number >> 8}.${number & 0xff}`;
  return slice(
    `web-${index}`,
    Array.from({ length: count }, (_, number) => ({ address: each(number), node: 'other' })),
  );
}

export async function cluster(services: number, perService: number, flavor?: IptablesFlavor): Promise<Rig> {
  const rig = new Rig(undefined, undefined, undefined, flavor);
  const rows = Array.from({ length: services }, (_, index) => [web(index), endpoints(index, perService)]);
  rig.commit([...NODE_ROWS, ...rows.flat()]);
  await rig.sync();
  return rig;
}
