// needs: nft
import '../support/namespace.js';

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import type { NftCommand, NftForeignChange, NftOperation } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { needs } from '../support/needs.js';

/** Notifications of the kernel, in a namespace of this file's own. */

const addon = loadAddon().nftables;
const TABLE = 'watched';
const ADDON = process.env['POINTSMAN_ADDON'] ?? join(process.cwd(), 'build', 'Release', 'pointsman.node');

function nft(...commands: readonly string[]): void {
  execFileSync('nft', ['-f', '-'], { input: commands.join('\n') });
}

function commands(...list: readonly NftCommand[]): NftOperation {
  return { type: 'commands', commands: list };
}

const table = { family: 'ip', name: TABLE };
const set = { family: 'ip', table: TABLE, name: 's', type: 'ipv4_addr' };

/** Watches for the length of a test; `next` waits for a change. */
function watch(t: Pick<typeof import('tap').t, 'teardown'>): {
  readonly changes: NftForeignChange[];
  next: () => Promise<NftForeignChange>;
} {
  const changes: NftForeignChange[] = [];
  let wake: () => void = () => undefined;
  const stop = addon.nftWatch(TABLE, (change) => {
    changes.push(change);
    wake();
  });
  t.teardown(stop);
  return {
    changes,
    async next() {
      while (changes.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          // A watch alone keeps no process alive.
          const timer = setTimeout(resolve, 100);
          timer.ref();
        });
      }
      const [change] = changes.splice(0, 1);
      if (change === undefined) throw new Error('no change');
      return change;
    },
  };
}

t.beforeEach(() => {
  nft('flush ruleset');
});

t.test('nft notifications name the process and the change', async (t) => {
  const { changes, next } = watch(t);
  nft(`add table ip ${TABLE}`);
  t.match(await next(), { families: ['ip'], missed: false, process: /^nft\[\d+\]$/ });
  nft(`add set ip ${TABLE} s { type ipv4_addr; }`);
  t.match(await next(), { families: ['ip'] });
  nft(`add element ip ${TABLE} s { 10.0.0.1 }`);
  t.match(await next(), { families: ['ip'] }, 'an element');
  nft(`add table ip6 ${TABLE}`, 'add table ip another');
  t.match(await next(), { families: ['ip6'] });
  nft('flush ruleset');
  t.same((await next()).families, ['ip', 'ip6'], 'everything');
  nft('add table ip another', 'add chain ip another c', 'add table inet watched');
  nft(`add table ip ${TABLE}`);
  t.match(await next(), { families: ['ip'] }, 'the others do not count');
  t.same(changes, []);
});

t.test('own nft transactions are not notified, and a large one may hide foreign ones', async (t) => {
  const { changes, next } = watch(t);
  await addon.nftTransact({
    family: 'ip',
    table: TABLE,
    operations: [commands({ add: { table } }, { add: { set } })],
  });
  const count = 5000;
  const keys = new Uint8Array(count * 4);
  for (let index = 0; index < count; index++) new DataView(keys.buffer).setUint32(index * 4, index);
  const none = { keyEnds: null, dataLength: 0, data: null, gotoChains: null, comments: null };
  const elements = (from: number, to: number, verb: 'add' | 'delete'): NftOperation => ({
    type: 'elements',
    verb,
    set: 's',
    count: to - from,
    keyLength: 4,
    keys: keys.slice(from * 4, to * 4),
    ...none,
  });
  for (let index = 0; index < 100; index++) {
    await addon.nftTransact({ family: 'ip', table: TABLE, operations: [elements(index, index + 1, 'add')] });
  }
  nft(`delete element ip ${TABLE} s { 0.0.0.1 }`);
  t.match(await next(), { families: ['ip'], missed: false }, 'only the foreign one');
  t.same(changes, []);
  // Many times the size of a batch that others are followed through.
  const operations = Array.from({ length: 8 }, () => [
    elements(200, count, 'add'),
    elements(200, count, 'delete'),
  ]).flat();
  await addon.nftTransact({ family: 'ip', table: TABLE, operations });
  t.same(await next(), { families: [], missed: true, process: null });
  nft(`delete element ip ${TABLE} s { 0.0.0.2 }`);
  t.match(await next(), { families: ['ip'], missed: false }, 'and afterwards it listens again');
});

// nft's own message is longer than what it may send at once without root of the machine (SO_SNDBUFFORCE).
t.test('an overflow of nft notifications counts as missed changes', needs('root'), async (t) => {
  const { next } = watch(t);
  nft(`add table ip ${TABLE}`, `add set ip ${TABLE} s { type ipv4_addr; }`);
  await next();
  const list = Array.from({ length: 60_000 }, (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
  nft(`add element ip ${TABLE} s { ${list.join()} }`);
  const change = await next();
  t.ok(change.missed || change.families.includes('ip'));
});

t.test('an nft listing is not disturbed by other tables, and notices changes of its own', async (t) => {
  await addon.nftTransact({
    family: 'ip',
    table: TABLE,
    operations: [commands({ add: { table } }, { add: { set } })],
  });
  // Another environment: its sockets are not ours.
  const worker = new Worker(
    `const { workerData } = require('node:worker_threads');
    const addon = require(workerData.path).nftables;
    const table = { family: 'ip', name: 'noise' };
    const commands = [{ add: { table } }, { delete: { table } }];
    const transaction = { family: 'ip', table: 'noise', operations: [{ type: 'commands', commands }] };
    const loop = () => addon.nftTransact(transaction).then(() => setImmediate(loop));
    loop();`,
    { eval: true, workerData: { path: ADDON } },
  );
  await once(worker, 'online');
  for (let round = 0; round < 200; round++) {
    const listing = await addon.nftList('ip', TABLE, null);
    t.equal(listing?.sets.length, 1);
  }
  await worker.terminate();
});

t.test('an nft watch ends with its environment', async (t) => {
  const code = `
    const { workerData } = require('node:worker_threads');
    const addon = require(workerData.path).nftables;
    for (let index = 0; index < 5; index++) addon.nftWatch('watched', () => undefined);
    addon.nftWatch('watched', () => undefined)();`;
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(code, { eval: true, workerData: { path: ADDON } });
    t.same(await once(worker, 'exit'), [0], 'which it does not hold up');
    nft(`add table ip ${TABLE}`, `delete table ip ${TABLE}`);
  }
});

t.test('nft watch: wrong arguments are named', (t) => {
  t.throws(() => addon.nftWatch('', () => undefined), { name: 'TypeError', message: /^table: / });
  t.throws((): unknown => Reflect.apply(Reflect.get(addon, 'nftWatch') as () => unknown, undefined, ['x', 7]), {
    name: 'TypeError',
    message: /^onChange: expected a function/,
  });
  t.end();
});
