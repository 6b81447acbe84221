import t from 'tap';
import type { IPAddress, IPPrefix } from '../../../src/base/ip.js';
import { ElementBatches } from '../../../src/dataplane/nftables/element-batches.js';
import { diffFrontend, NO_ELEMENTS, type FrontendElements } from '../../../src/dataplane/nftables/frontend-elements.js';
import { packRange } from '../../../src/dataplane/nftables/keys.js';
import type { ForwardingTable } from '../../../src/plan/forwarding-table.js';
import { frontendKey } from '../../../src/plan/frontend-key.js';
import type { AddressSet, FamilyTable } from '../../../src/plan/types.js';
import type { Row } from '../../../src/state/rows.js';
import { usually } from '../../support/extent.js';
import { cpuTime } from '../../support/cpu-time.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice, type EndpointText } from '../../support/rows.js';
import { commandsOf, compiler, elementsOf, NODE_ROWS, Rig } from './rig.js';

/** Budgets: what one change may cost, counted, in clusters small and large. */

const ENDPOINTS = 50;

function endpoints(index: number, notReady: readonly number[] = []): readonly EndpointText[] {
  return Array.from({ length: ENDPOINTS }, (_, number) => ({
    address: `10.${128 + (index >> 8)}.${index & 255}.${number + 1}`,
    state: notReady.includes(number) ? '' : 'rs',
    node: `node-${number}`,
  }));
}

function serviceRows(index: number): readonly Row[] {
  const name = `s${index}`;
  return [service(name, { clusterIPs: [`10.96.${index >> 8}.${index & 255}`] }), slice(name, endpoints(index))];
}

async function cluster(services: number): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, ...Array.from({ length: services }, (_, index) => serviceRows(index)).flat()]);
  await rig.sync();
  return rig;
}

/** Counts how often the dataplane asks its table for something. */
function counting(table: ForwardingTable): { readonly table: FamilyTable; readonly calls: () => number } {
  let calls = 0;
  const count = <Result>(result: Result): Result => {
    calls++;
    return result;
  };
  const { clusterAddresses, hairpinAddresses } = table;
  const set = (of: Pick<AddressSet, 'has'>): AddressSet => ({
    has: (address) => count(of.has(address)),
    [Symbol.iterator]: () => {
      throw new Error('every address was asked for');
    },
  });
  return {
    table: {
      family: table.family,
      node: table.node,
      unsynced: table.unsynced,
      frontend: (key) => count(table.frontend(key)),
      frontends: () => {
        throw new Error('every frontend was asked for');
      },
      clusterAddresses: set(clusterAddresses),
      hairpinAddresses: set(hairpinAddresses),
      ownEndpoints: table.ownEndpoints,
      healthChecks: () => {
        throw new Error('every health check was asked for');
      },
    },
    calls: () => calls,
  };
}

t.test('many Services × 50 endpoints: a change of one endpoint is one small transaction', async (t) => {
  const rig = await cluster(usually(300, 5000));
  t.equal(rig.kernel.committed.length, 1, 'the whole table is one transaction');

  t.test('an endpoint that becomes unready is one transaction', async (t) => {
    rig.commit([slice('s77', endpoints(77, [10]))]);
    const sent = await rig.during(() => rig.sync());
    t.equal(sent.length, 1, 'exactly one transaction');
    t.same(commandsOf(sent), [], 'no rule, chain or set');
    const elements = elementsOf(sent).reduce((sum, { count }) => sum + count, 0);
    t.equal(elements, 3, 'the last slot goes into the hole');
  });

  t.test('an endpoint that returns is one transaction', async (t) => {
    rig.commit([slice('s77', endpoints(77))]);
    const sent = await rig.during(() => rig.sync());
    t.equal(sent.length, 1);
    t.same(commandsOf(sent), []);
    t.equal(
      elementsOf(sent).reduce((sum, { count }) => sum + count, 0),
      1,
    );
  });

  t.test('the first endpoint of a new Service, and its last', async (t) => {
    rig.commit([service('new', { clusterIPs: ['10.99.0.1'] }), slice('new', [{ address: '10.200.0.1' }])]);
    const come = await rig.during(() => rig.sync());
    t.equal(come.length, 1);
    t.ok(elementsOf(come).reduce((sum, { count }) => sum + count, 0) <= 8);
    rig.commit([slice('new', [{ address: '10.200.0.1', state: '' }])]);
    const empty = await rig.during(() => rig.sync());
    t.equal(empty.length, 1);
    t.ok(elementsOf(empty).reduce((sum, { count }) => sum + count, 0) <= 8);
    t.notOk(
      elementsOf(empty).some(({ set }) => set === 'frontends'),
      'no verdict, which would be validated',
    );
  });

  t.test('no change is no transaction and no listing', async (t) => {
    const listings = rig.kernel.listed.length;
    t.same(await rig.during(() => rig.sync()), []);
    t.equal(rig.kernel.listed.length, listings);
  });

  t.test('a full comparison finds no difference', async (t) => {
    t.same(await rig.during(() => rig.sync(true)), []);
  });

  t.test('a new process finds no difference', async (t) => {
    rig.restart();
    const { transactions, repairs } = await rig.sync();
    t.equal(transactions, 0);
    t.same(repairs, []);
  });
});

t.test('a change costs the same among 50 Services as among many more', async (t) => {
  const calls: number[] = [];
  const bytes: number[] = [];
  for (const services of [50, usually(300, 2000)]) {
    const rig = await cluster(services);
    rig.commit([slice('s7', endpoints(7, [3]))]);
    const spied = counting(rig.table);
    await rig.sync();
    rig.commit([slice('s7', endpoints(7))]);
    rig.plan();
    const report = await rig.dataplane.apply(spied.table, rig.table.takeChange(), { full: false });
    calls.push(spied.calls());
    bytes.push(report.bytes);
    t.equal(report.elementOperations, 1);
  }
  t.equal(calls[0], calls[1], 'looks at the table as often');
  t.equal(bytes[0], bytes[1], 'sends as many bytes');
  t.ok((calls[1] ?? 0) <= 4, 'a few looks', { calls });
});

t.test('a change iterates over nothing that grows with the cluster', async (t) => {
  const rig = await cluster(2000);
  // What the fake kernel does is none of our work.
  rig.kernel.nftTransact = () => Promise.resolve({ messages: 1, bytes: 1 });
  rig.commit([slice('s7', endpoints(7, [3]))]);
  rig.plan();
  const change = rig.table.takeChange();
  const { largest } = await walking(() => rig.dataplane.apply(rig.table, change, { full: false }));
  t.ok(largest < 100, 'no map or set of all Services', { largest });
  rig.restart();
  const everything = await walking(() => rig.sync());
  t.ok(everything.largest >= 2000, 'a full sync does, which this test would notice', everything);
});

/** The size of the largest map or set that is walked through while something is done. */
async function walking(work: () => Promise<unknown>): Promise<{ readonly largest: number }> {
  let largest = 0;
  const restore: (() => void)[] = [];
  for (const { prototype } of [Map, Set]) {
    for (const name of ['entries', 'keys', 'values', 'forEach', Symbol.iterator] as const) {
      const original = Object.getOwnPropertyDescriptor(prototype, name);
      if (original === undefined) continue;
      const walk = original.value as (this: ReadonlySet<unknown>, ...parameters: unknown[]) => unknown;
      Object.defineProperty(prototype, name, {
        ...original,
        value: function (this: ReadonlySet<unknown>, ...parameters: unknown[]): unknown {
          largest = Math.max(largest, this.size);
          return walk.apply(this, parameters);
        },
      });
      restore.push(() => Object.defineProperty(prototype, name, original));
    }
  }
  try {
    await work();
  } finally {
    for (const undo of restore) undo();
  }
  return { largest };
}

t.test('20,000 changed source ranges are diffed in little time', async (t) => {
  const elements = (octet: number): FrontendElements => ({
    ...NO_ELEMENTS,
    admitted: Array.from({ length: 20_000 }, (_, index) =>
      packRange(`${octet}.${index >> 8}.${index & 255}.0/24` as IPPrefix),
    ),
  });
  const [current, next] = [elements(10), elements(11)];
  const batches = new ElementBatches('IPv4');
  const key = frontendKey('10.96.0.1' as IPAddress, 80, 'TCP');
  // Looking for each in the other list takes seconds.
  const ms = await cpuTime(() => {
    diffFrontend(batches, key, current, next);
  });
  t.equal(batches.count, 40_000);
  t.ok(ms < 1000, `${ms} ms`);
});
