// needs: nft
import '../support/namespace.js';

import { createHook } from 'node:async_hooks';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import type { NftElementsListing, NftElementsOperation, NftOperation } from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';
import type { NativeError } from '../../src/native/errors.js';
import { accept, add, TABLE } from './skeleton.js';
import type { Command } from './skeleton.js';
import {
  addon,
  owner,
  command,
  transact,
  fresh,
  column,
  elements,
  withData,
  frontend,
  endpoint,
  listed,
  rows,
  failure,
} from './nft-elements.js';
import { usually } from '../support/extent.js';
import { eventually } from '../support/lab/lab.js';

t.test('nft elements are listed as they were added', async (t) => {
  await fresh();
  const pair = [frontend(1), frontend(2)];
  await transact(
    { ...withData(elements('targets', 'add', pair), [endpoint(1), endpoint(2)]), comments: ['first', null] },
    { ...elements('services', 'add', pair), gotoChains: ['x', 'x'] },
    elements('frontends', 'add', pair),
  );
  t.strictSame(rows(await listed('targets')), [
    '0a6000010600000000500000 - 0af400011f900000 - first',
    '0a6000020600000000500000 - 0af400021f900000 - -',
  ]);
  t.strictSame(rows(await listed('services')), [
    '0a6000010600000000500000 - - goto x -',
    '0a6000020600000000500000 - - goto x -',
  ]);
  t.strictSame(rows(await listed('frontends')), [
    '0a6000010600000000500000 - - - -',
    '0a6000020600000000500000 - - - -',
  ]);
});

t.test('nftList() fetches only the requested elements', async (t) => {
  await fresh();
  const all = await addon.nftList('ip', TABLE, null);
  t.ok(all?.sets.every((set) => set.elements !== null));
  const none = await addon.nftList('ip', TABLE, []);
  t.ok(none?.sets.every((set) => set.elements === null));
  t.strictSame(
    none?.sets.map((set) => set.name),
    none?.sets.map((set) => set.name).sort(),
  );
});

t.test('nftElements() fetches the elements of some sets without the table', async (t) => {
  await fresh();
  await transact(withData(elements('targets', 'add', [frontend(1)]), [endpoint(1)]));
  const listing = await addon.nftList('ip', TABLE, null);
  for (const names of [['targets'], ['frontends', 'targets'], []]) {
    const found = await addon.nftElements('ip', TABLE, names);
    t.strictSame(
      found,
      names.map((name) => listing?.sets.find((set) => set.name === name)),
    );
  }
  t.strictSame(await addon.nftElements('ip', TABLE, ['no-such-set']), []);
  t.strictSame(await addon.nftElements('ip', 'no-such-table', ['targets']), []);
});

t.test('nftElements() has counters', async (t) => {
  await fresh();
  const add = ['add', 'element', 'ip', TABLE, 'seen'];
  const one = '10.0.0.1 . 10.96.0.1 . tcp . 80';
  for (const element of [`{ ${one} counter packets 3 bytes 180 }`, '{ 10.0.0.2 . 10.96.0.1 . tcp . 80 }'])
    t.equal(spawnSync('nft', [...add, element]).status, 0, element);
  const [found] = await addon.nftElements('ip', TABLE, ['seen']);
  t.equal(found?.elements?.count, 2);
  t.strictSame([...(found?.elements?.packets ?? [])].sort(), [0, 3]);
  t.equal((await listed('frontends'))?.packets, null);
});

t.test('intervals of concatenations are deleted and added in one batch', async (t) => {
  await fresh();
  const range = (low: number, high: number): NftElementsOperation => ({
    ...elements('sources', 'add', [[...frontend(1), 192, 168, low, 0]]),
    keyEnds: column([[...frontend(1), 192, 168, high, 255]]),
  });
  await transact(range(0, 3), range(16, 31));
  t.equal((await listed('sources'))?.count, 2);
  await transact({ ...range(0, 3), verb: 'delete' }, range(0, 3), { ...range(16, 31), verb: 'delete' }, range(16, 17));
  t.strictSame(rows(await listed('sources')), [
    '0a6000010600000000500000c0a80000 0a6000010600000000500000c0a803ff - - -',
    '0a6000010600000000500000c0a81000 0a6000010600000000500000c0a811ff - - -',
  ]);
});

t.test('plain intervals are listed as pairs of ends', async (t) => {
  await fresh();
  const { status } = spawnSync('nft', [
    'add',
    'element',
    'ip',
    TABLE,
    'networks',
    '{ 10.0.0.0/8, 192.168.1.0/24, 240.0.0.0/4 }',
  ]);
  t.equal(status, 0);
  t.strictSame(rows(await listed('networks')), [
    '0a000000 0affffff - - -',
    'c0a80100 c0a801ff - - -',
    'f0000000 ffffffff - - -',
  ]);
});

t.test('the data of an element changes in one batch', async (t) => {
  await fresh();
  await transact(withData(elements('targets', 'add', [frontend(1)]), [endpoint(1)]));
  await transact(
    elements('targets', 'delete', [frontend(1)]),
    withData(elements('targets', 'add', [frontend(1)]), [endpoint(9)]),
  );
  t.strictSame(rows(await listed('targets')), ['0a6000010600000000500000 - 0af400091f900000 - -']);
});

/** The load of a large cluster: 5,000 Services with 50 endpoints. */
function largeLoad(services: number, each: number): NftElementsOperation {
  const count = services * each;
  const keys = new DataView(new ArrayBuffer(16 * count));
  const content = new DataView(new ArrayBuffer(8 * count));
  for (let index = 0; index < count; index++) {
    keys.setUint32(16 * index, index % each, true);
    keys.setUint32(16 * index + 4, 0x0a600000 + Math.floor(index / each));
    keys.setUint8(16 * index + 8, 6);
    keys.setUint16(16 * index + 12, 80);
    content.setUint32(8 * index, 0x0af40000 + index);
    content.setUint16(8 * index + 4, 8080);
  }
  const columns = { keys: new Uint8Array(keys.buffer), data: new Uint8Array(content.buffer) };
  return { ...elements('endpoints', 'add', []), count, keyLength: 16, dataLength: 8, ...columns };
}

t.test('many thousands of elements load in one transaction', async (t) => {
  await fresh();
  const whole = largeLoad(usually(500, 5000), 50);
  const bytesEach = 48;
  // The send buffer of an ordinary user's namespace takes no more than this at once.
  const size = Math.min(whole.count, Math.floor(addon.nftMaxBatch() / bytesEach));
  let bytes = 0;
  for (let start = 0; start < whole.count; start += size) {
    const count = Math.min(size, whole.count - start);
    const keys = whole.keys.subarray(16 * start, 16 * (start + count));
    const data = whole.data?.subarray(8 * start, 8 * (start + count)) ?? null;
    const ack = await addon.nftTransact({ ...owner, operations: [{ ...whole, count, keys, data }] });
    t.ok(ack.messages <= 1 + count / 500, `${ack.messages} messages`);
    bytes += ack.bytes;
  }
  t.ok(bytes < bytesEach * whole.count, `${bytes} bytes`);
  t.equal((await listed('endpoints'))?.count, whole.count);
});

t.test('a failing nft transaction changes nothing and names the failed operation', async (t) => {
  await fresh();
  await transact(withData(elements('targets', 'add', [frontend(1)]), [endpoint(1)]));
  const rejected = (...operations: readonly NftOperation[]): Promise<NativeError> => failure(transact(...operations));

  const twice = withData(elements('targets', 'add', [frontend(2), frontend(1)]), [endpoint(2), endpoint(2)]);
  t.match(await rejected(elements('frontends', 'add', [frontend(3)]), twice), {
    code: 'ERR_NETLINK',
    errno: 'EEXIST',
    operation: 'nft transaction',
    object: 'add element targets 10.96.0.1 . tcp . 80',
    index: 1,
    element: 1,
    message: /^nft transaction: add element targets 10\.96\.0\.1 \. tcp \. 80: .*EEXIST/,
  });
  t.equal((await listed('frontends'))?.count, 0, 'what came before it did not happen');
  t.equal((await listed('targets'))?.count, 1);

  t.match(await rejected(elements('targets', 'delete', [frontend(1), frontend(7, 443)])), {
    errno: 'ENOENT',
    object: 'delete element targets 10.96.0.7 . tcp . 443',
    index: 0,
    element: 1,
  });
  t.match(await rejected({ ...elements('services', 'add', [frontend(1)]), gotoChains: ['nowhere'] }), {
    errno: 'ENOENT',
    object: 'add element services 10.96.0.1 . tcp . 80',
    element: 0,
  });
  // Kernels of old name an element too.
  t.match(await rejected(elements('unheard-of', 'add', [frontend(1)])), {
    errno: 'ENOENT',
    object: /^add element(?:s to)? unheard-of/,
    index: 0,
  });
  t.match(await rejected(command(add('ip', 'rule', { chain: 'unheard-of', expr: [accept] }))), {
    errno: 'ENOENT',
    object: 'add rule unheard-of: [immediate dreg 0 value accept]',
    index: 0,
    element: null,
  });
  t.match(await rejected(command({ create: { chain: { ...owner, name: 'x' } } })), {
    errno: 'EEXIST',
    object: 'create chain x',
  });
  const jumpTo = (chain: string): Command => add('ip', 'rule', { chain, expr: [{ jump: { target: 'x' } }] });
  t.match(await rejected(command(jumpTo('pre'), jumpTo('x'))), { code: 'ERR_NETLINK', errno: /^(ELOOP|EMLINK)$/ });
  t.match(await rejected(command({ delete: { set: { ...owner, name: 'unheard-of' } } })), {
    errno: 'ENOENT',
    object: 'delete set unheard-of',
  });
});

t.test('nftList() of a missing table is null', async (t) => {
  t.equal(await addon.nftList('ip6', 'no-such-table', null), null);
});

t.test('an empty nft transaction, and an empty deletion, change nothing', async (t) => {
  await fresh();
  await transact(elements('frontends', 'add', [frontend(1)]));
  t.strictSame(await transact(), { messages: 0, bytes: 0 });
  t.strictSame(await transact(elements('frontends', 'delete', [])), { messages: 0, bytes: 0 });
  t.equal((await listed('frontends'))?.count, 1);
});

function openSockets(): number {
  const open = readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('socket:');
    } catch {
      return false; // the descriptor of the listing itself
    }
  });
  return open.length;
}

t.test('netlink sockets are reused, and closed after failures', async (t) => {
  await fresh();
  const before = openSockets();
  for (let round = 0; round < 20; round++) {
    await transact(elements('frontends', 'add', [frontend(round)]));
    await failure(transact(elements('frontends', 'delete', [frontend(200)])));
    await addon.nftList('ip', TABLE, []);
  }
  t.ok(openSockets() <= before + 1, `${before} sockets before, ${openSockets()} after`);
  await Promise.all(Array.from({ length: 20 }, () => addon.nftList('ip', TABLE, [])));
  t.ok(openSockets() <= before + 4, 'no more than four are kept');
});

t.test('nftList() has foreign rules', async (t) => {
  await fresh();
  const { status } = spawnSync('nft', [
    'add',
    'rule',
    'ip',
    TABLE,
    'x',
    'quota over 10 mbytes limit rate 5/second tcp dport { 80, 81 } accept',
  ]);
  t.equal(status, 0);
  const listing = await addon.nftList('ip', TABLE, []);
  const chain = listing?.chains.find((each) => each.name === 'x');
  t.match(chain?.rules, [/^\[unknown\(quota\) 0x[0-9a-f]+\] \[limit rate 5 .*\[lookup sreg 1 set __set0\]/]);
});

t.test('nftList() ends at a number of rules', async (t) => {
  await fresh();
  // An ordinary user's nft, in a namespace of its own, cannot send 5,000 in one message.
  const input = Array.from({ length: 500 }, () => `add rule ip ${TABLE} x counter accept`).join('\n');
  for (let portion = 0; portion < 10; portion++) t.equal(spawnSync('nft', ['-f', '-'], { input }).status, 0);
  const listing = await addon.nftList('ip', TABLE, []);
  const count = (listing?.chains ?? []).reduce((sum, chain) => sum + chain.rules.length, 0);
  t.ok(count >= 5000, `${count} rules`);
  t.same(await addon.nftList('ip', TABLE, [], count), listing, 'so many are read');
  const before = openSockets();
  const tooMany = await failure(addon.nftList('ip', TABLE, [], count - 1));
  t.equal(tooMany.errno, 'E2BIG');
  t.ok(openSockets() <= before, 'the socket with the rest of the rules is closed');
  t.same(await addon.nftList('ip', TABLE, [], count), listing, 'the next listing is whole');
});

t.test('listings are consistent during foreign changes', async (t) => {
  await fresh();
  // Of our own changes whoever lists knows, and they start no listing over. A worker has an addon of its own, so it is somebody else.
  const module = (name: string): string => new URL(name, import.meta.url).href;
  const code = `
    const { parentPort } = require('node:worker_threads');
    import('${module('./nft-elements.js')}').then(async ({ elements, frontend, transact }) => {
      const both = [frontend(1), frontend(2)];
      let writing = true;
      parentPort.once('message', () => (writing = false));
      parentPort.postMessage('under way');
      while (writing) {
        await transact(elements('frontends', 'add', both), elements('ports', 'add', []));
        await transact(elements('frontends', 'delete', both));
        // Now and then a listing shall be in time.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      parentPort.close();
    });`;
  const writer = new Worker(code, { eval: true });
  await new Promise((resolve, reject) => writer.once('message', resolve).once('error', reject));
  for (let round = 0; round < 30; round++) {
    const outcome = await listed('frontends').catch((error: unknown) => error);
    if (isNativeError(outcome)) t.equal(outcome.errno, 'EINTR', 'gives up after repeated changes');
    else t.ok([0, 2].includes((outcome as NftElementsListing).count), 'both or none');
  }
  const ended = new Promise((resolve) => writer.once('exit', resolve));
  writer.postMessage('enough');
  await ended;
});

/** Runs code with `addon` in a child of its own. */
function child(unshare: readonly string[], code: string): string {
  const module = new URL('../../src/native/load.js', import.meta.url).href;
  const script = `const { loadAddon } = await import('${module}'); const addon = loadAddon().nftables; ${code}`;
  const argv = [...unshare, process.execPath, '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync('unshare', argv, { encoding: 'utf8' });
  return stdout + stderr;
}

t.test('nft without CAP_NET_ADMIN is an error that names it', (t) => {
  // A new user namespace has no rights over the network namespace it came from.
  const show = 'catch((e) => console.log(e.code, e.errno, e.message))';
  const table = `{ add: { table: { family: 'ip', name: 't' } } }`;
  const transaction = `{ family: 'ip', table: 't', operations: [{ type: 'commands', commands: [${table}] }] }`;
  const output = child(
    ['--user'],
    `await addon.nftTransact(${transaction}).${show}; await addon.nftList('ip', 't', null).${show};`,
  );
  t.match(output, /^ERR_NETLINK EPERM nft transaction: .*CAP_NET_ADMIN/m);
  t.match(output, /^ERR_NETLINK EPERM nft list: .*CAP_NET_ADMIN/m);
  t.end();
});

t.test('a batch larger than the socket buffer is refused before it is sent', (t) => {
  const operation = `{ type: 'elements', verb: 'add', set: 's', count: n, keyLength: 4, keys: new Uint8Array(4 * n), keyEnds: null,
    dataLength: 0, data: null, gotoChains: null, comments: null }`;
  const output = child(
    ['--user', '--map-root-user', '--net'],
    `const most = addon.nftMaxBatch(); const n = Math.ceil(most / 16); console.log('most', most);
     await addon.nftTransact({ family: 'ip', table: 't', operations: [${operation}] }).catch((e) => console.log(e.errno, e.message))`,
  );
  const most = Number(/^most (\d+)$/m.exec(output)?.[1]);
  t.ok(most >= 100_000 && most < 1 << 26, `an ordinary user's socket takes ${most} bytes`);
  t.match(output, new RegExp(`^EMSGSIZE nft transaction: the batch has \\d+ bytes and the socket takes ${most}`, 'm'));
  t.end();
});

t.test('a worker that ends with calls in flight does not crash', async (t) => {
  await fresh();
  const module = new URL('../../src/native/load.js', import.meta.url).href;
  const code = `
    const { parentPort } = require('node:worker_threads');
    import('${module}').then(({ loadAddon }) => {
      const addon = loadAddon().nftables;
      const again = () => addon.nftList('ip', '${TABLE}', null).then(again, again);
      for (let call = 0; call < 20; call++) again();
      parentPort.postMessage('under way');
    });`;
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(code, { eval: true });
    await new Promise((resolve) => worker.once('message', resolve));
    t.equal(await worker.terminate(), 1, 'terminated');
  }
  t.ok(await addon.nftList('ip', TABLE, []));
});

t.test('the nft generation is read without a thread', async (t) => {
  await fresh();
  const works: string[] = [];
  const hook = createHook({
    init: (_, type) => {
      if (type.startsWith('nft ')) works.push(type);
    },
  }).enable();
  const before = await addon.nftGeneration();
  t.same(works, []);
  await transact(command({ add: { chain: { family: 'ip', table: TABLE, name: 'another' } } }));
  hook.disable();
  t.equal(works.length, 1, 'a transaction has one');
  t.equal(await addon.nftGeneration(), before + 1);
});

t.test('nftGenerationWatch() calls back once, when any transaction has changed the ruleset', async (t) => {
  await fresh();
  const changed = async (change: () => unknown): Promise<number> => {
    let calls = 0;
    const stop = addon.nftGenerationWatch(await addon.nftGeneration(), 5, () => calls++);
    await sleep(50);
    t.equal(calls, 0);
    await change();
    await eventually('a call', () => Promise.resolve(calls || null));
    await change();
    await sleep(50);
    stop();
    stop();
    return calls;
  };
  const chains = ['one', 'other'];
  t.equal(
    await changed(() =>
      transact(command({ add: { chain: { family: 'ip', table: TABLE, name: chains.pop() ?? '' } } })),
    ),
    1,
  );
  t.equal(await changed(() => execFileSync('nft', ['add', 'table', 'ip6', 'others'])), 1);
  const call = (...args: readonly unknown[]): unknown =>
    Reflect.apply(Reflect.get(addon, 'nftGenerationWatch') as () => unknown, undefined, args);
  t.throws(() => call(-1, 5, () => undefined), /generation/);
  t.throws(() => call(1, 0, () => undefined), /periodMs/);
  t.throws(() => call(1, 5, null), /onChange/);
});
