// What lists cost a process with many endpoints: others have their turn meanwhile, and nothing is unpacked that is not shown.
import t from 'tap';
import { firstNames } from '../../../src/base/unpacked-names.js';
import type { ServicesPage } from '../src/api.js';
import { service, slice } from '../../../test/support/rows.js';
import { RowsAnswer } from '../src/rows-answer.js';
import { listServices, SERVICE_SORTS } from '../src/service-list.js';
import { ServiceOrder } from '../src/service-order.js';
import { pageScene } from './ui-scene.js';

const SERVICES = 1100;
const ENDPOINTS = 50;

/** Turns of the event loop until it is done. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function count() {
    turns++;
    next = setImmediate(count);
  });
  await work();
  clearImmediate(next);
  return turns;
}

t.test('the page sorts Services by their endpoints without blocking the event loop', async (t) => {
  const scene = await pageScene(t);
  const numbers = Array.from({ length: SERVICES }, (_, number) => number);
  scene.say(
    numbers.flatMap((number) => [
      service(`s${number}`, { clusterIPs: [`10.96.${number >> 8}.${number & 255}`] }),
      slice(
        `s${number}`,
        Array.from({ length: ENDPOINTS }, (_, index) => ({
          address: `10.${number >> 8}.${number & 255}.${index}`,
          node: `node-${index % 5}`,
          pod: `s${number}-${index}`,
        })),
      ),
    ]),
  );
  scene.sync();
  const order = new ServiceOrder(scene.running, () => () => undefined);
  t.teardown(() => {
    order.forget();
  });
  const query = { search: '', type: null, problem: null, offset: 0, limit: 1, places: true } as const;
  for (const sort of SERVICE_SORTS) {
    if (sort === 'name') continue;
    const turns = await turnsOf(() => listServices(scene.running, order, { ...query, sort }));
    t.ok(turns >= Math.floor(SERVICES / 256), `${sort}: ${turns} turns`);
  }
  const { rows } = await listServices(scene.running, order, { ...query, sort: 'name' });
  t.match(
    [...rows],
    [
      {
        key: 'default/s0',
        places: {
          pods: { names: ['s0-0', 's0-1', 's0-2'], more: ENDPOINTS - 3 },
          nodes: { names: ['node-0', 'node-1', 'node-2'], more: 2 },
        },
      },
    ],
  );
});

t.test('a list counts the nodes and pods of each Service, across its slices', async (t) => {
  const scene = await pageScene(t);
  const endpoints = (first: number, count: number, pods: boolean) =>
    Array.from({ length: count }, (_, index) => ({
      address: `10.1.0.${first + index}`,
      ...(index === 0 ? {} : { node: `node-${(first + index) % 5}` }),
      ...(pods ? { pod: `pod-${first + index}` } : {}),
    }));
  scene.say([
    service('a'),
    slice('a', endpoints(0, 9, true), { name: 'a-1' }),
    slice('a', endpoints(8, 4, true), { name: 'a-2' }),
    slice('a', [{ address: 'fd00::1', node: 'node-9', pod: 'pod-9' }], { name: 'a-6', family: 'IPv6' }),
    service('b', { clusterIPs: ['10.96.0.11'] }),
    slice('b', endpoints(20, 3, false)),
    service('c', { clusterIPs: ['10.96.0.12'] }),
  ]);
  scene.sync();
  const { rows } = await scene.read<ServicesPage>('services?places=yes');
  t.same(
    rows.map(({ places }) => places),
    [
      {
        pods: { names: ['pod-0', 'pod-1', 'pod-2'], more: 10 },
        nodes: { names: ['node-1', 'node-2', 'node-3'], more: 2 },
      },
      { pods: { names: [], more: 0 }, nodes: { names: ['node-1', 'node-2'], more: 0 } },
      { pods: { names: [], more: 0 }, nodes: { names: [], more: 0 } },
    ],
  );
});

t.test('a list of all Services is one answer, whose rows are made while it is written', async (t) => {
  const scene = await pageScene(t);
  const numbers = Array.from({ length: SERVICES }, (_, number) => number);
  scene.say(numbers.map((number) => service(`s${number}`, { clusterIPs: [`10.96.${number >> 8}.${number & 255}`] })));
  scene.sync();
  const page = await scene.read<ServicesPage>('services?limit=10000');
  t.match(page, { total: SERVICES, matched: SERVICES, offset: 0 });
  const keys = numbers.map((number) => `default/s${number}`).sort();
  t.same(
    page.rows.map(({ key }) => key),
    keys,
  );
  t.same((await scene.read<ServicesPage>('services?limit=2&offset=1098')).rows, page.rows.slice(1098));
});

t.test('RowsAnswer makes few rows before others have their turn', async (t) => {
  let made = 0;
  function* rows(): Generator<unknown, void, void> {
    while (made < 1000) yield { number: made++, text: '\u009b' };
  }
  let text = '';
  const before: number[] = [];
  const turns = await turnsOf(async () => {
    for await (const part of new RowsAnswer({ total: 1000 }, rows()).stream()) {
      before.push(made);
      text += String(part);
    }
  });
  t.ok(turns >= 7, `${turns} turns`);
  for (const [index, count] of before.entries()) t.ok(count <= 128 * (index + 2), `part ${index}: ${count} rows`);
  t.notMatch(text, '\u009b', 'it may be shown on a terminal');
  const numbers = Array.from({ length: 1000 }, (_, number) => ({ number, text: '\u009b' }));
  t.same(JSON.parse(text), { total: 1000, rows: numbers });
  const none = await new RowsAnswer({ total: 0 }, []).stream().toArray();
  t.equal(none.join(''), '{"total":0,"rows":[]}\n');
});

t.test('firstNames() finds the first names of a packed list without decoding the rest', (t) => {
  t.same(firstNames('', 3), []);
  t.same(firstNames('web-\na\n\nb\nc', 3), ['web-a', null, 'web-b']);
  t.same(firstNames('web-\na', 3), ['web-a']);
  t.end();
});
