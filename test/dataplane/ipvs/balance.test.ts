import t from 'tap';
import type { BalanceRow, EndpointSliceRow, Row } from '../../../src/state/rows.js';
import { blamedNodeFaults } from '../../../src/dataplane/contract.js';
import { IPVS_FLAGS } from '../../../src/native/contract.js';
import type { FakeService } from '../../support/fake-ipvs/virtual-servers.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Weights as weights of destinations, and hashing by a scheduler of the Service's own. */

function web(balance: Partial<BalanceRow> | null, fields: ServiceText = {}): Row {
  return service('web', {
    type: 'NodePort',
    ports: [{ port: 80, nodePort: 30080 }],
    ...(balance === null ? {} : { balance: { by: null, unreadable: [], ...balance } }),
    ...fields,
  });
}

/** One endpoint for each weight. */
function weighted(...weights: readonly number[]): readonly EndpointSliceRow[] {
  return weights.map((weight, index) => ({
    ...slice('web', [{ address: `10.0.0.${index + 1}`, node: 'other' }], { name: `web-${index}` }),
    weight,
  }));
}

async function started(scheduler: string, ...rows: readonly Row[]): Promise<Rig> {
  const rig = new Rig();
  rig.scheduler = scheduler;
  rig.restart();
  rig.commit([...NODE_ROWS, ...rows]);
  await rig.sync();
  t.same(await rig.difference(), [], 'dump says what plan says');
  return rig;
}

function virtual(rig: Rig): FakeService {
  const [found] = [...rig.kernel.addon.ipvs.services.values()].filter(({ service: { port } }) => port === 80);
  if (found === undefined) throw new Error('no virtual service');
  return found;
}

/** Weights by the last byte of the endpoint's address. */
function held(rig: Rig): readonly number[] {
  const found = [...virtual(rig).destinations].map(([key, { weight }]) => [key.charCodeAt(3), weight] as const);
  return found.sort(([one], [other]) => one - other).map(([, weight]) => weight);
}

t.test('weighted endpoints have small whole numbers as weights, and a weighted scheduler', async (t) => {
  for (const [scheduler, weighing] of [
    ['rr', 'wrr'],
    ['lc', 'wlc'],
    ['sh', 'sh'],
    ['sed', 'sed'],
  ] as const) {
    const rig = await started(scheduler, web(null), ...weighted(10, 20, 50, 0));
    t.same(held(rig), [1, 2, 5], scheduler);
    t.equal(virtual(rig).state.scheduler, weighing);
  }
  const uneven = await started('rr', web(null), ...weighted(60_001, 10_000));
  t.same(held(uneven), [100, 17], 'no more than a hundred in a row');
});

t.test('a Service without annotations has the common scheduler, and weight 1', async (t) => {
  for (const scheduler of ['rr', 'mh']) {
    const rig = await started(scheduler, web(null), ...weighted(3, 3));
    t.same(held(rig), [1, 1]);
    t.equal(virtual(rig).state.scheduler, scheduler);
  }
});

t.test('hashing uses its own scheduler, by address or by address and port', async (t) => {
  for (const scheduler of ['rr', 'mh'])
    for (const by of ['address', 'address-port'] as const) {
      const rig = await started(scheduler, web({ by }), ...weighted(1, 4));
      t.same(held(rig), [1, 4]);
      const { state } = virtual(rig);
      t.equal(state.scheduler, 'mh');
      t.equal((state.flags & IPVS_FLAGS.scheduler2) !== 0, by === 'address-port', `${scheduler}, ${by}`);
      t.same([...rig.table.limitations()], []);
    }
});

t.test('a weight that comes, changes or goes is one message, and a restart sends none', async (t) => {
  const rig = await started('rr', web(null), ...weighted(1, 1, 1));
  const sent = async (...rows: readonly Row[]): Promise<readonly string[]> => {
    rig.commit(rows);
    const lines = await rig.during(() => rig.sync());
    t.same(await rig.difference(), []);
    return lines.filter((line) => line.startsWith('ipvsadm') && line.includes('10.96.0.10:80'));
  };
  t.match(await sent(...weighted(1, 3, 1)), [
    'ipvsadm -E -t 10.96.0.10:80 -s wrr',
    /^ipvsadm -e -t 10\.96\.0\.10:80 -r 10\.0\.0\.2:\d+ -m -w 3$/,
  ]);
  t.match(await sent(...weighted(1, 3, 2)), [/-e .* -r 10\.0\.0\.3:\d+ -m -w 2$/]);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
  t.match(await sent(...weighted(1, 3, 0)), [/-e .* -r 10\.0\.0\.3:\d+ -m -w 0$/], 'weight 0 drains');
  t.match(await sent(...weighted(1, 1, 0)), [/-E .* -s rr$/, /-e .* -r 10\.0\.0\.2:\d+ -m -w 1$/]);
});

t.test('an external change of a weight is found and repaired', async (t) => {
  const rig = await started('rr', web(null), ...weighted(1, 3));
  const [first] = virtual(rig).destinations.values();
  if (first !== undefined) first.weight = 7;
  t.equal(await rig.dataplane.audit(), true);
  const report = await rig.sync(true);
  t.match(report.repairs, [/destinations of 10\.96\.0\.10:80\/TCP/]);
  t.same([...held(rig)].sort(), [1, 3]);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('a scheduler that the kernel lacks is a limitation, and the Service has the common scheduler', async (t) => {
  const rig = new Rig();
  rig.lacking = ['mh', 'wrr'];
  rig.restart();
  rig.commit([...NODE_ROWS, web({ by: 'address' }), ...weighted(1, 3)]);
  const { limitations } = await rig.sync();
  t.equal(virtual(rig).state.scheduler, 'rr');
  t.match(
    limitations?.map(({ text }) => text),
    [/^connection attempts/, /removed endpoint/, /are not named/, /for hashing .* no mh$/, /for weights .* no wrr$/],
  );
});

t.test("a scheduler that the kernel lacks is the node's fault, named once", async (t) => {
  const rig = new Rig();
  rig.kernel.addon.ipvs.schedulers.delete('rr');
  rig.commit([...NODE_ROWS, web(null), ...weighted(1, 1)]);
  const error: unknown = await rig.sync().then(
    () => null,
    (error: unknown) => error,
  );
  const fault = { text: /no scheduler rr of ip_vs/, remedy: /modprobe ip_vs_rr,/, isVital: true };
  t.match(blamedNodeFaults(error), [fault]);
  rig.kernel.addon.ipvs.schedulers.add('rr');
  rig.now += 60_000;
  const after = await rig.sync();
  t.same([after.quarantined, after.nodeFaults ?? []], [[], []]);
  t.same(await rig.difference(), []);
});
