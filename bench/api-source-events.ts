import { LineLimit } from '../src/base/line-limit.js';
import { NO_EVENTS } from '../src/base/events.js';
import type { Log } from '../src/base/log.js';
import { limitMemory } from '../src/base/heap-options.js';
import { codecOf } from '../src/sources/kubernetes/codec/codec.js';
import { ENDPOINT_SLICES } from '../src/sources/kubernetes/resources.js';
import { EventStream } from '../src/sources/kubernetes/watch/event-stream.js';
import { Inventory } from '../src/sources/kubernetes/watch/inventory.js';
import { Interner } from '../src/sources/translate/intern.js';
import { Store } from '../src/state/store.js';
import { clusterSlice } from '../test/support/api-server/cluster.js';
import { encodingFor } from '../test/support/api-server/encoding.js';

/**
 * What an event costs from a frame's bytes to the state, without sockets: frames of a watch are encoded beforehand and handed over one by one, each a commit
 * of its own. Arguments: content type, slices, endpoints, rounds. A round changes every slice once. Prints a line of JSON with the CPU time of all threads
 * for an event, in microseconds. The code of the first round is not yet compiled, so it stands alone. The other rounds give the median, the cheapest and the
 * dearest.
 */

const [contentType = '', ...numbers] = process.argv.slice(2);
const [slices = 10_000, endpoints = 10, rounds = 10] = numbers.map(Number);
const NODES = 1000;

const log: Log = {
  info: () => undefined,
  warn: (message) => {
    throw new Error(message);
  },
  error: (error) => {
    throw new Error(String(error));
  },
};

const encoding = encodingFor(contentType);
const codec = codecOf(contentType);
if (encoding === null || codec === null) throw new TypeError(`no such encoding: ${contentType}`);

let version = 0;

const spoken = encoding;

function record(notReady: number): readonly Buffer[] {
  return Array.from({ length: slices }, (_, number) => {
    const slice = clusterSlice((number * 7919) % slices, 0, endpoints, NODES, notReady);
    const metadata = { ...(slice['metadata'] as object), resourceVersion: String(++version) };
    return spoken.event('MODIFIED', { ...slice, metadata });
  });
}

/** CPU milliseconds of handing over the frames. */
async function play(stream: EventStream, recorded: readonly Buffer[]): Promise<number> {
  const before = process.cpuUsage();
  for (const frame of recorded) {
    stream.push(frame, 0);
    // The commit is made in a microtask.
    await Promise.resolve();
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

limitMemory();
const store = new Store();
let commits = 0;
store.onChange(() => {
  commits++;
  if (commits % 100 === 0) store.takeChanges();
});
const stream = new EventStream(codec, {
  resource: ENDPOINT_SLICES,
  inventory: new Inventory(ENDPOINT_SLICES, new Interner(), log, NO_EVENTS, new LineLimit(() => performance.now())),
  writer: store.register('bench'),
  tracing: null,
  listener: { event: () => undefined, listed: () => undefined, advanced: () => undefined },
  initial: false,
});
const recordings = [record(0), record(1)];
const perEvent: number[] = [];
for (let round = 0; round < rounds; round++) {
  perEvent.push(((await play(stream, recordings[round % 2] ?? [])) * 1000) / slices);
}
if (commits !== rounds * slices) throw new Error(`${commits} commits of ${rounds * slices} events`);
const [first, ...others] = perEvent;
others.sort((one, other) => one - other);
const line = { first, median: others[others.length >> 1], least: others[0], most: others.at(-1) };
process.stdout.write(`${JSON.stringify(line)}\n`);
