import { packedAddress } from '../../../src/base/pack-address.js';
import type { Row } from '../../../src/state/rows.js';
import type { KernelPacket } from '../../support/fake-kernel/packet.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { address, service, slice, type ServiceText } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** A Service with session affinity, its clients, and what the rules remember of them. */

const LOCAL = [address('192.168.0.2')];

export function sticky(fields: ServiceText = {}): Row {
  return service('web', {
    clusterIPs: ['10.96.0.10'],
    ports: [{ port: 80, nodePort: 30080 }],
    affinitySeconds: 60,
    ...fields,
  });
}

export function endpoints(...numbers: readonly number[]): Row {
  return slice(
    'web',
    numbers.map((number) => ({ address: `10.0.1.${number}`, node: number === 1 ? 'me' : 'other' })),
    { ports: [{ port: 8080 }] },
  );
}

export async function started(service = sticky()): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, service, endpoints(1, 2, 3)]);
  await rig.sync();
  return rig;
}

function packetOf(client: string, to: string): KernelPacket {
  const [destination = '', port = ''] = to.split(':');
  return {
    source: address(client),
    destination: address(destination),
    port: Number(port),
    protocol: 'TCP',
    inputInterface: 'eth0',
  };
}

/** A client connects to a frontend and is sent to an endpoint. */
export function connect(rig: Rig, client: string, to: string, endpoint: number): void {
  rig.kernel.connect(packetOf(client, to), LOCAL, `10.0.1.${endpoint}:8080`);
}

/** So many clients connect, of which the rules are asked about the first alone: the kernel would remember all others as it. */
export function connectMany(rig: Rig, count: number, to: string, endpoint: number): void {
  connect(rig, '10.9.0.0', to, endpoint);
  for (const { name, elements } of rig.kernel.table('ip')?.sets.values() ?? []) {
    const first = name.startsWith('clients-') ? elements.get(packedAddress(address('10.9.0.0'))) : undefined;
    if (first === undefined) continue;
    for (let index = 1; index < count; index++) {
      const key = packedAddress(address(`10.9.${index >> 8}.${index & 255}`));
      elements.set(key, { ...first, key });
    }
  }
}

/** Where the rules may send a client that connects. */
export function answers(rig: Rig, client: string, to: string): readonly string[] {
  const verdict = rig.kernel.trace(packetOf(client, to), LOCAL);
  return verdict.type === 'forward' ? verdict.endpoints : [verdict.type];
}

/** `client → endpoint` of every client remembered. */
export function clients(rig: Rig): readonly string[] {
  const sets = [...(rig.kernel.table('ip')?.sets.values() ?? [])].filter(({ name }) => name.startsWith('clients-'));
  return sets
    .flatMap(({ elements }) => [...elements.values()])
    .map(
      ({ key, value }) => `${[...Buffer.from(key, 'latin1')].join('.')} ${Buffer.from(value ?? '', 'latin1')[3] ?? 0}`,
    )
    .sort();
}
