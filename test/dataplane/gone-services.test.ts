// Services of every kind come and go, in every mode: the plan and the mode remember as much as before.
import t, { type Test } from 'tap';
import type { FamilyDataplane } from '../../src/dataplane/contract.js';
import type { Row, RowRef } from '../../src/state/rows.js';
import { FakeIptables } from '../support/fake-iptables/fake-iptables.js';
import type { FamilyRig } from '../support/family-rig.js';
import { rememberedBy } from '../support/remembered.js';
import { service, slice, type ServiceText } from '../support/rows.js';
import { Rig as IptablesRig } from './iptables/rig.js';
import { Rig as IpvsRig } from './ipvs/rig.js';
import { Rig as KernelspaceRig } from './kernelspace/rig.js';
import { NODE_ROWS, Rig as NftablesRig } from './nftables/rig.js';

/** Of each kind in a round. */
const EACH = 20;
const KINDS: readonly ((octets: string, number: number) => ServiceText)[] = [
  () => ({}),
  (octets, number) => ({ externalIPs: [`192.1.${octets}`], affinitySeconds: 60 + number }),
  (_, number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: 30_000 + (number % 2500) }], affinitySeconds: 60 }),
  (octets) => ({ type: 'LoadBalancer', loadBalancer: [`192.2.${octets}`], sourceRanges: [`10.${octets}.0/24`] }),
  (octets, number) => ({
    type: 'LoadBalancer',
    loadBalancer: [`192.3.${octets}`],
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, nodePort: 30_000 + (number % 2500) }],
    affinitySeconds: 60,
  }),
  () => ({ internalTrafficPolicy: 'Local' }),
  // All of these claim one address: they are in conflict.
  () => ({ externalIPs: ['192.4.0.1'] }),
  () => ({ ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] }),
];

/** Services with names, addresses and timeouts that none had before; some have no endpoints. */
function round(first: number): readonly { readonly row: Row; readonly ref: RowRef }[] {
  return Array.from({ length: EACH * KINDS.length }, (_, index) => {
    const number = first + index;
    const octets = `${number >> 8}.${number & 255}`;
    const name = `s${number}`;
    const text = {
      clusterIPs: [`10.96.${octets}`],
      ports: [{ port: 80 }],
      ...KINDS[index % KINDS.length]?.(octets, number),
    };
    const endpoints = [
      // Pods of this node are the runtime's to remove.
      { address: `10.1.0.${index % 250}`, node: 'me' },
      { address: `10.2.${octets}`, node: 'other' },
    ];
    const ports = text.ports.map((port) => ({ ...port, port: 8080 }));
    const rows = [service(name, text), slice(name, index % 5 === 4 ? [] : endpoints, { ports })];
    return rows.map((row) => ({ row, ref: { kind: row.kind, namespace: 'default', name } }));
  }).flat();
}

interface Mode<Rig> {
  readonly name: string;
  readonly rig: Rig;
  /** Parts of the fake kernel that the mode has hold of. */
  readonly kernel: readonly object[];
  /** Long enough for what is removed later. */
  readonly wait: () => void;
}

async function comeAndGo<Kernel, Process extends FamilyDataplane>(
  t: Test,
  { rig, kernel, wait }: Mode<FamilyRig<Kernel, Process>>,
): Promise<void> {
  rig.commit(NODE_ROWS);
  await rig.sync();
  let made = 0;
  const once = async (): Promise<ReadonlyMap<string, number>> => {
    const rows = round(made);
    made += EACH * KINDS.length;
    rig.commit(rows.map(({ row }) => row));
    await rig.sync();
    rig.commit(
      [],
      rows.map(({ ref }) => ref),
    );
    await rig.sync();
    await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows());
    for (let later = 0; later < 3; later++) {
      wait();
      await rig.sync();
    }
    return rememberedBy({ dataplane: rig.dataplane, table: rig.table }, kernel);
  };
  await once();
  const before = await once();
  await once();
  const after = await once();
  const grown = [...after].filter(([path, count]) => count > (before.get(path) ?? 0));
  t.same(grown, [], 'by what leads to it, and how many entries');
}

t.test('mode nftables keeps nothing of removed Services', (t) => {
  const rig = new NftablesRig();
  const wait = (): void => void (rig.now += 2000);
  return comeAndGo(t, { name: 'nftables', rig, kernel: [rig.kernel], wait });
});

t.test('mode iptables keeps nothing of removed Services', (t) => {
  const rig = new IptablesRig(new FakeIptables());
  const wait = (): void => {
    rig.wait(2000);
  };
  return comeAndGo(t, { name: 'iptables', rig, kernel: [rig.kernel], wait });
});

t.test('mode ipvs keeps nothing of removed Services', (t) => {
  const rig = new IpvsRig();
  const wait = (): void => void (rig.now += 2_000_000);
  return comeAndGo(t, { name: 'ipvs', rig, kernel: [rig.kernel, rig.kernel.addon, rig.kernel.programs], wait });
});

t.test('mode kernelspace keeps nothing of removed Services', (t) => {
  const rig = new KernelspaceRig();
  const wait = (): void => void (rig.now += 2000);
  return comeAndGo(t, { name: 'kernelspace', rig, kernel: [rig.kernel, rig.kernel.hns], wait });
});
