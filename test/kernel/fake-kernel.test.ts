import '../support/namespace.js';

import t from 'tap';
import type { NftablesAddon, NftOperation } from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';
import { loadAddon } from '../../src/native/load.js';
import { nftablesDataplane } from '../../src/dataplane/nftables/driver.js';
import { Planner } from '../../src/plan/planner.js';
import { printTable } from '../../src/plan/text.js';
import { Store } from '../../src/state/store.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { planSettings } from '../support/plan-settings.js';
import { node, service, serviceCIDR, slice } from '../support/rows.js';
import { run, STORIES, TABLE, where } from './fake-kernel-stories.js';

/** Transactions on the fake kernel and on this one: both must take them or refuse them alike, and list the same afterwards. */

const addon = loadAddon().nftables;

interface Outcome {
  readonly errno: string | null;
  readonly index: number | null;
  readonly element: number | null;
}

async function outcome(kernel: NftablesAddon, operations: readonly NftOperation[]): Promise<Outcome> {
  try {
    await kernel.nftTransact({ ...where, operations });
    return { errno: null, index: null, element: null };
  } catch (error) {
    if (!isNativeError(error)) throw error;
    return { errno: error.errno, index: error.index, element: error.element };
  }
}

/** The elements of a listing have no order. */
async function listing(kernel: NftablesAddon): Promise<unknown> {
  const table = await kernel.nftList('ip', TABLE, null);
  return table?.sets.map(({ elements: listed, ...rest }) => {
    const size = rest.keyLength;
    const rows = Array.from({ length: listed?.count ?? 0 }, (_, index) =>
      [
        listed?.keys.subarray(index * size, (index + 1) * size).join('.'),
        listed?.keyEnds?.subarray(index * size, (index + 1) * size).join('.'),
        listed?.data?.subarray(index * rest.dataLength, (index + 1) * rest.dataLength).join('.'),
        listed?.verdicts?.[index],
      ].join(' '),
    );
    return { ...rest, elements: rows.sort(), chains: table.chains };
  });
}

for (const [name, transactions] of Object.entries(STORIES)) {
  t.test(`the fake nftables agrees with the kernel: ${name}`, async (t) => {
    const fake = new FakeKernel(addon);
    t.teardown(() => outcome(addon, [run(['add', 'table', {}], ['delete', 'table', {}])]));
    for (const [index, operations] of transactions.entries()) {
      const before = [await addon.nftGeneration(), await fake.nftGeneration()] as const;
      const real = await outcome(addon, operations);
      const faked = await outcome(fake, operations);
      const steps = [(await addon.nftGeneration()) - before[0], (await fake.nftGeneration()) - before[1]] as const;
      const where = `transaction ${index + 1}: ${real.errno ?? 'taken'}`;
      t.equal(faked.errno, real.errno, where);
      t.equal(faked.index, real.index, `${where}, operation`);
      // The kernel does not always say which element it was.
      if (real.element !== null) t.equal(faked.element, real.element, `${where}, element`);
      t.equal(steps[1], steps[0], `${where}, generation`);
      t.same(await listing(fake), await listing(addon), `${where}, listing`);
    }
  });
}

/** Everything that a Service can ask for, in one family. */
function planned(family: 'IPv4' | 'IPv6'): Planner['tables']['IPv4'] {
  const four = family === 'IPv4';
  const pod = (last: number): string => (four ? `10.0.1.${last}` : `fd00:10::${last}`);
  const store = new Store();
  const rows = [
    node('me', [four ? '192.168.0.2' : '2001:db8::1']),
    serviceCIDR('kubernetes', [four ? '10.96.0.0/12' : 'fd00:96::/112']),
    service('all', {
      clusterIPs: [four ? '10.96.0.1' : 'fd00:96::1'],
      externalIPs: [four ? '198.51.100.1' : '2001:db8:1::1'],
      loadBalancer: [four ? '198.51.100.2' : '2001:db8:1::2'],
      sourceRanges: four ? ['203.0.113.0/24', '10.0.0.0/8'] : ['2001:db8:2::/64', '2001:db8::1/128'],
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 32000,
      affinitySeconds: 10_800,
      ports: [
        { name: 'a', port: 80, nodePort: 30080 },
        { name: 'b', port: 53, protocol: 'UDP', nodePort: 30053 },
        { name: 'c', port: 9, protocol: 'SCTP' },
      ],
    }),
    slice(
      'all',
      [6, 7, 8].map((last) => ({ address: pod(last), node: last === 6 ? 'me' : 'other' })),
      {
        ports: [
          { name: 'a', port: 8080 },
          { name: 'b', port: 5353, protocol: 'UDP' },
        ],
      },
    ),
  ];
  store.register('test').apply(rows.map((row) => ({ type: 'upsert', row })));
  const planner = new Planner(planSettings());
  planner.update(store.snapshot, store.takeChanges());
  return planner.tables[family];
}

for (const family of ['IPv4', 'IPv6'] as const) {
  t.test(`${family}: the proxy's whole table lists alike, and is adopted`, async (t) => {
    const nft = family === 'IPv4' ? 'ip' : 'ip6';
    const table = planned(family);
    const fake = new FakeKernel(addon);
    const change = table.takeChange();
    for (const kernel of [fake, addon]) {
      await nftablesDataplane(kernel, family).apply(table, change, { full: true });
      const dataplane = nftablesDataplane(kernel, family);
      t.match(await dataplane.apply(table, change, { full: true }), { transactions: 0, repairs: [], problems: [] });
      t.same(await dataplane.dump(table), printTable(table));
    }
    const rules = (listed: Awaited<ReturnType<NftablesAddon['nftList']>>): unknown => [
      listed?.chains,
      listed?.sets.map(({ elements: held, ...rest }) => ({ ...rest, count: held?.count })),
    ];
    t.same(rules(await fake.nftList(nft, TABLE, null)), rules(await addon.nftList(nft, TABLE, null)));
    const names = ['hairpin-pairs', 'no-such-set', 'restricted-frontends'];
    const counts = async (kernel: NftablesAddon): Promise<unknown> =>
      (await kernel.nftElements(nft, TABLE, names)).map(({ elements: held, ...rest }) => ({
        ...rest,
        count: held?.count,
      }));
    t.same(await counts(fake), await counts(addon));
  });
}
