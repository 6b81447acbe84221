// Translated flows, added up by where they went: what lives, what ends, and what could not be read in time.
import '../support/namespace.js';
import t from 'tap';
import { addressFromBytes } from '../../src/base/ip.js';
import { FLOW_SUM, FLOW_WAY, type FlowSums } from '../../src/native/contract.js';
import { addon, flush, insert, run, type Tuple } from './conntrack-flows.js';

const BUFFER = 1 << 20;
const SERVICE: Tuple = { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.10', port: 53, by: ['10.244.1.10', 5353] };
const SERVICE6: Tuple = { protocol: 'tcp', from: 'fd00::1', to: 'fd00:96::a', port: 80, by: ['fd00:244::a', 8080] };
const DIRECT: Tuple = { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.11', port: 53 };

/** `17 10.96.0.10 53 > 10.244.1.10 5353: 1`, the last number that of flows. */
function lines({ count, ways, sums }: FlowSums): string[] {
  const view = new DataView(ways.buffer, ways.byteOffset, ways.byteLength);
  return Array.from({ length: count }, (_, row) => {
    const start = row * FLOW_WAY.size;
    const length = ways[start + FLOW_WAY.addressLength] ?? 0;
    const side = (at: number, port: number): string =>
      `${addressFromBytes(ways.slice(start + at, start + at + length))} ${view.getUint16(start + port)}`;
    const to = side(FLOW_WAY.destination, FLOW_WAY.destinationPort);
    const by = side(FLOW_WAY.source, FLOW_WAY.sourcePort);
    return `${ways[start + FLOW_WAY.protocol] ?? 0} ${to} > ${by}: ${sums[row * FLOW_SUM.length] ?? 0}`;
  }).sort();
}

t.test('the flow counter counts each flow once, seen alive or only at its end', async (t) => {
  flush();
  insert(SERVICE);
  const counter = addon.conntrackCount(100, BUFFER);
  const first = await counter.take();
  t.match(first, { count: 0, living: 1, overruns: 0 }, 'what was there before does not count');
  for (const flow of [{ ...SERVICE, from: '10.1.0.2' }, { ...SERVICE, from: '10.1.0.3' }, SERVICE6, DIRECT])
    insert(flow);
  const second = await counter.take();
  t.same(lines(second), ['17 10.96.0.10 53 > 10.244.1.10 5353: 2', '6 fd00:96::a 80 > fd00:244::a 8080: 1']);
  t.equal(second.living, 4);
  insert({ ...SERVICE, from: '10.1.0.4' });
  flush();
  const third = await counter.take();
  t.same(lines(third), ['17 10.96.0.10 53 > 10.244.1.10 5353: 1'], 'the one that came and went in between');
  t.equal(third.overruns, 0);
  // Without a listener in any namespace of the machine the kernel gives flows nothing to report their end with (nf_conntrack_ecache.c): that of the first
  // is then unknown here.
  t.ok(third.living <= 1, `${third.living} living`);
  const fourth = await counter.take();
  t.same(lines(fourth), []);
  t.equal(fourth.living, 0, 'what was missing twice is forgotten');
  counter.stop();
  insert(SERVICE);
  flush();
  counter.stop();
});

t.test('the flow counter has a limit of rows, and sums up the rest', async (t) => {
  flush();
  const counter = addon.conntrackCount(2, BUFFER);
  await counter.take();
  for (const port of [1, 2, 3, 4]) insert({ ...SERVICE, from: `10.1.0.${port}`, port });
  const sums = await counter.take();
  t.equal(sums.count, 2);
  t.same([...sums.leftOut], [2, 0, 0, 0, 0]);
  counter.stop();
});

t.test('the flow counter reports lost notifications', async (t) => {
  flush();
  const counter = addon.conntrackCount(100, 0);
  await counter.take();
  for (let port = 1; port <= 12; port++) insert({ ...SERVICE, from: `10.1.0.${port}`, port });
  t.equal((await counter.take()).count, 12);
  flush();
  let overruns = 0;
  let counted = 0;
  for (let attempt = 0; attempt < 100 && overruns === 0; attempt++) {
    const sums = await counter.take();
    overruns += sums.overruns;
    counted += sums.count;
  }
  t.ok(overruns > 0);
  t.equal(counted, 0, 'nothing is counted twice');
  for (let look = 0; look < 3; look++) await counter.take();
  t.equal((await counter.take()).living, 0, 'and those whose end was missed are forgotten');
  counter.stop();
});

t.test('several flow counters count independently; wrong fields are named', async (t) => {
  flush();
  const counters = [addon.conntrackCount(9, BUFFER), addon.conntrackCount(9, BUFFER)];
  for (const counter of counters) await counter.take();
  insert(SERVICE);
  const [one, other] = await Promise.all(counters.map((counter) => counter.take()));
  t.same([one?.count, other?.count], [1, 1]);
  for (const counter of counters) counter.stop();
  t.throws(() => addon.conntrackCount(0, 0), /most: expected an integer from 1/);
  t.throws(() => addon.conntrackCount(1, -1), /buffer: expected an integer from 0/);
});

t.test('the flow counter does not keep a process alive, and ends with it', (t) => {
  const script = `
    import { loadAddon } from ${JSON.stringify(new URL('../../src/native/load.js', import.meta.url).href)};
    await loadAddon().conntrack.conntrackCount(9, 4096).take();
  `;
  t.equal(run(process.execPath, '--input-type=module', '--eval', script), '');
  t.end();
});
