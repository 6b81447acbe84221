// What a cluster weighs in memory, and what one change costs: counted, so that it is the same on any machine.
import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { NftAck, NftTransaction } from '../../../src/native/contract.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import { translate } from '../../../src/sources/translate/object.js';
import type { Row, RowKind } from '../../../src/state/rows.js';
import { serviceObject, sliceObject } from '../../support/api-objects.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { compiler, elementLines, NODE_ROWS, Rig } from './rig.js';

/** Acknowledges everything and keeps nothing. */
class ForgetfulKernel extends FakeKernel {
  transactions: NftTransaction[] = [];

  override nftTransact(transaction: NftTransaction): Promise<NftAck> {
    this.transactions.push(transaction);
    return Promise.resolve({ messages: 1, bytes: 1 });
  }
}

const names = new Interner();

function rowOf(kind: RowKind, object: unknown): Row {
  const { row } = translate(kind, object, names);
  if (row === null) throw new Error('none of ours');
  return row;
}

/** Of the Service of a number: itself and its one slice. */
function rowsOf(service: number, endpoints: number): readonly Row[] {
  const [high, low] = [service >> 8, service & 255];
  const addresses = Array.from({ length: endpoints }, (_, index) => `10.${64 + index}.${high}.${low}`);
  return [
    rowOf('Service', serviceObject(`service-${service}`, { clusterIP: `10.96.${high}.${low}` })),
    rowOf('EndpointSlice', sliceObject(`service-${service}-a`, `service-${service}`, addresses)),
  ];
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function held(): number {
  collect();
  const { heapUsed, arrayBuffers } = memoryUsage();
  return heapUsed + arrayBuffers;
}

/** So many that code, which is compiled when V8 comes to it, weighs little beside them. */
const BATCH = 2500;

t.test('nftables: memory per Service and endpoint, operations and garbage of one change', async (t) => {
  const kernel = new ForgetfulKernel(compiler);
  const rig = new Rig(kernel);
  let services = 0;
  const load = async (endpoints: number): Promise<number> => {
    const before = held();
    rig.commit(Array.from({ length: BATCH }, () => rowsOf(services++, endpoints)).flat());
    await rig.sync();
    kernel.transactions = [];
    return (held() - before) / BATCH;
  };
  rig.commit(NODE_ROWS);
  // What is made once is there then.
  await load(10);
  // A table that grows, or a collection that leaves something for later, makes one load look heavier than it is.
  const lightest = async (endpoints: number): Promise<number> =>
    Math.min(await load(endpoints), await load(endpoints), await load(endpoints));
  const ten = await lightest(10);
  const forty = await lightest(40);
  t.comment(`${Math.round(ten)} bytes with ten endpoints, ${Math.round(forty)} with forty`);
  t.ok(ten < 5000 && forty < 11_500, `${ten} bytes with ten endpoints, ${forty} with forty`);

  const change = async (round: number): Promise<void> => {
    rig.commit(rowsOf(7, 9 + (round % 2)).slice(1));
    await rig.sync();
  };
  for (let round = 0; round < 100; round++) await change(round);
  kernel.transactions = [];
  await change(0);
  await change(1);
  t.strictSame(
    kernel.transactions.map((transaction) => elementLines([transaction])),
    ['delete', 'add'].map((verb) => [`${verb} endpoints 1`, `${verb} hairpin-pairs 1`]),
  );
  const garbage: number[] = [];
  for (let window = 0; window < 5; window++) {
    collect();
    const before = memoryUsage().heapUsed;
    for (let round = 0; round < 8; round++) await change(round);
    garbage.push((memoryUsage().heapUsed - before) / 8);
  }
  // One in which nothing was compiled, and nothing collected.
  const least = Math.min(...garbage.filter((bytes) => bytes > 0));
  t.comment(`${least} bytes a change`);
  t.ok(least < 130_000, `${least} bytes a change`);
});

t.test('nftables: operations, memory and garbage of one change among 10,000 endpoints of a Service', async (t) => {
  const kernel = new ForgetfulKernel(compiler);
  const rig = new Rig(kernel);
  const part = (number: number, ready: boolean): Row => {
    const endpoints = Array.from({ length: 100 }, (_, index) => ({
      addresses: [`10.${64 + index}.0.${number}`],
      conditions: { ready: ready || index > 0 },
      nodeName: `node-${index}`,
    }));
    return rowOf('EndpointSlice', sliceObject(`large-${number + 100}`, 'large', [], { endpoints }));
  };
  const parts = Array.from({ length: 100 }, (_, number) => part(number, true));
  rig.commit([...NODE_ROWS, rowOf('Service', serviceObject('large', { clusterIP: '10.96.0.9' })), ...parts]);
  await rig.sync();
  const change = async (round: number): Promise<void> => {
    rig.commit([part(Math.floor(round / 2) % 100, round % 2 === 1)]);
    await rig.sync();
  };
  for (let round = 0; round < 200; round++) await change(round);
  kernel.transactions = [];
  await change(14);
  await change(15);
  t.strictSame(
    kernel.transactions.map((transaction) => elementLines([transaction])),
    [['delete endpoints 2', 'add endpoints 1'], ['add endpoints 1']],
    'the last takes the place of the one that goes',
  );
  const garbage: { readonly heap: number; readonly buffers: number }[] = [];
  for (let window = 0; window < 5; window++) {
    collect();
    const before = memoryUsage();
    for (let round = 0; round < 8; round++) await change(round);
    const after = memoryUsage();
    garbage.push({
      heap: (after.heapUsed - before.heapUsed) / 8,
      buffers: (after.arrayBuffers - before.arrayBuffers) / 8,
    });
  }
  const least = Math.min(...garbage.map(({ heap }) => heap).filter((bytes) => bytes > 0));
  // A list of 10,000 endpoints is 60 KB: one is planned, and one has them by slot.
  const buffers = Math.min(...garbage.map((each) => each.buffers));
  t.comment(`${least} and ${buffers} bytes a change`);
  t.ok(least < 200_000 && buffers < 200_000, `${least} and ${buffers} bytes a change`);
});
