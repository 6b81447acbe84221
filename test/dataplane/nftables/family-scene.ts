import type { Row } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig, where } from './rig.js';

export const ROWS: readonly Row[] = [
  ...NODE_ROWS,
  service('web', { clusterIPs: ['10.96.0.10'], ports: [{ port: 80, nodePort: 30080 }] }),
  slice('web', [
    { address: '10.0.1.1', node: 'me' },
    { address: '10.0.1.2', node: 'other' },
    { address: '10.0.1.3', node: 'other' },
  ]),
  service('dns', { clusterIPs: ['10.96.0.53'], ports: [{ port: 53, protocol: 'UDP' }], affinitySeconds: 60 }),
  slice('dns', [{ address: '10.0.2.1', node: 'other' }], { ports: [{ port: 53, protocol: 'UDP' }] }),
  service('ranges', {
    clusterIPs: ['10.96.0.99'],
    loadBalancer: ['1.2.3.4'],
    sourceRanges: ['203.0.113.0/24', '198.51.100.0/25'],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 32000,
  }),
  slice('ranges', [{ address: '10.0.3.1', node: 'me' }]),
  service('empty', { clusterIPs: ['10.96.0.11'] }),
];

export async function started(kernel = new FakeKernel(compiler)): Promise<Rig> {
  const rig = new Rig(kernel);
  rig.commit(ROWS);
  await rig.sync();
  return rig;
}

export const on = (kind: string, body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  [kind]: { ...where, ...body },
});

/** `10.96.0.10 . tcp . 80` */
export const WEB = '0a60000a 06000000 00500000';
export const WEB_NODE_PORT = '06000000 75800000';
