// What lists cost a process with many endpoints: others have their turn meanwhile, and nothing is unpacked that is not shown.
import t from 'tap';
import { firstNames } from '../../../src/base/unpacked-names.js';
import { service, slice } from '../../../test/support/rows.js';
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
  t.match(rows, [
    {
      key: 'default/s0',
      places: {
        pods: { names: ['s0-0', 's0-1', 's0-2'], more: ENDPOINTS - 3 },
        nodes: { names: ['node-0', 'node-1', 'node-2'], more: 2 },
      },
    },
  ]);
});

t.test('firstNames() finds the first names of a packed list without decoding the rest', (t) => {
  t.same(firstNames('', 3), []);
  t.same(firstNames('web-\na\n\nb\nc', 3), ['web-a', null, 'web-b']);
  t.same(firstNames('web-\na', 3), ['web-a']);
  t.end();
});
