import t from 'tap';
import type { NftablesAddon } from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';
import { loadAddon } from '../../src/native/load.js';

const { nftables: addon, ipset } = loadAddon();

/** The addon as a caller without types meets it. */
function call(name: keyof NftablesAddon, ...values: readonly unknown[]): unknown {
  const method: unknown = Reflect.get(addon, name);
  return Reflect.apply(method as (...values: readonly unknown[]) => unknown, undefined, values);
}

const ELEMENTS = {
  type: 'elements',
  verb: 'add',
  set: 's',
  count: 2,
  keyLength: 4,
  keys: new Uint8Array(8),
  keyEnds: null,
  dataLength: 0,
  data: null,
  gotoChains: null,
  comments: null,
};

/** An array in an array … */
function nested(depth: number): readonly unknown[] {
  return depth === 0 ? [] : [nested(depth - 1)];
}

function transaction(operation: unknown): unknown {
  return { family: 'ip', table: 't', operations: [{ type: 'commands', commands: [] }, operation] };
}

const OPERATIONS: readonly (readonly [string, unknown])[] = [
  ['operations[1]: expected an object, found undefined', undefined],
  ['operations[1].type: expected "commands" or "elements", found "other"', { type: 'other' }],
  [
    'operations[1].commands[0]: expected an object, array, string, integer, boolean or null, found a function',
    { type: 'commands', commands: [() => 1] },
  ],
  [
    'operations[1].commands[0].add.size: expected an integer, found 1.500000',
    { type: 'commands', commands: [{ add: { size: 1.5 } }] },
  ],
  [
    `operations[1].commands${'[0]'.repeat(33)}: expected less deeply nested values, found an array of 1`,
    { type: 'commands', commands: nested(40) },
  ],
  ['operations[1].verb: expected "add" or "delete", found "flush"', { ...ELEMENTS, verb: 'flush' }],
  ['operations[1].set: expected a string of 1 to 255 bytes without NUL, found ""', { ...ELEMENTS, set: '' }],
  ['operations[1].set: expected a string of 1 to 255 bytes without NUL, found "a\0b"', { ...ELEMENTS, set: 'a\0b' }],
  ['operations[1].count: expected an integer from 0 to 100000000, found -1', { ...ELEMENTS, count: -1 }],
  ['operations[1].count: expected an integer from 0 to 100000000, found 1.500000', { ...ELEMENTS, count: 1.5 }],
  [
    'operations[1].count: expected an integer from 0 to 100000000, found a number that is not finite',
    { ...ELEMENTS, count: NaN },
  ],
  ['operations[1].keyLength: expected an integer from 1 to 64, found 65', { ...ELEMENTS, keyLength: 65 }],
  ['operations[1].keys: expected Uint8Array, found an array of 8', { ...ELEMENTS, keys: [0, 0, 0, 0, 0, 0, 0, 0] }],
  [
    'operations[1].keys: expected Uint8Array, found a typed array of 8 bytes',
    { ...ELEMENTS, keys: new Uint16Array(4) },
  ],
  [
    'operations[1].keys: expected Uint8Array of 8 bytes (count 2 × keyLength 4), found a typed array of 7 bytes',
    { ...ELEMENTS, keys: new Uint8Array(7) },
  ],
  [
    'operations[1].keyEnds: expected Uint8Array of 8 bytes (count 2 × keyLength 4), found a typed array of 9 bytes',
    { ...ELEMENTS, keyEnds: new Uint8Array(9) },
  ],
  ['operations[1].keyEnds: expected Uint8Array, found undefined', { ...ELEMENTS, keyEnds: undefined }],
  [
    'operations[1].data: expected Uint8Array of 12 bytes (count 2 × dataLength 6), found a typed array of 8 bytes',
    { ...ELEMENTS, dataLength: 6, data: new Uint8Array(8) },
  ],
  [
    'operations[1].data: expected null when deleting, found a typed array of 2 bytes',
    { ...ELEMENTS, verb: 'delete', data: new Uint8Array(2) },
  ],
  ['operations[1].gotoChains: expected an array of count 2, found an array of 1', { ...ELEMENTS, gotoChains: ['x'] }],
  [
    'operations[1].gotoChains[1]: expected a string of 1 to 255 bytes without NUL, found null',
    { ...ELEMENTS, gotoChains: ['x', null] },
  ],
  [
    'operations[1].gotoChains: expected null where there is data, found an array of 2',
    { ...ELEMENTS, dataLength: 1, data: new Uint8Array(2), gotoChains: ['x', 'y'] },
  ],
  ['operations[1].comments: expected null or an array of count 2, found an array of 0', { ...ELEMENTS, comments: [] }],
  [
    `operations[1].comments[0]: expected a string of 1 to 127 bytes without NUL, found "${'c'.repeat(40)}…"`,
    { ...ELEMENTS, comments: ['c'.repeat(128), null] },
  ],
];

for (const method of ['nftEncode', 'nftTransact'] as const) {
  t.test(`${method}() names the wrong field`, (t) => {
    for (const [message, operation] of OPERATIONS)
      t.throws(() => call(method, transaction(operation)), new TypeError(message));
    t.throws(() => call(method), new TypeError('the argument: expected an object, found undefined'));
    t.throws(() => call(method, { family: 'inet' }), new TypeError('family: expected "ip" or "ip6", found "inet"'));
    t.throws(
      () => call(method, { family: 'ip', table: 't' }),
      new TypeError('operations: expected an array, found undefined'),
    );
    t.end();
  });
}

t.test('other native functions name the wrong argument', (t) => {
  t.throws(
    () => call('nftList', 'ip'),
    new TypeError('table: expected a string of 1 to 255 bytes without NUL, found undefined'),
  );
  t.throws(() => call('nftList', 'ip', 't'), new TypeError('elements: expected an array, found undefined'));
  t.throws(
    () => call('nftList', 'ip', 't', [1]),
    new TypeError('elements[0]: expected a string of 1 to 255 bytes without NUL, found 1'),
  );
  t.throws(
    () => call('nftList', 'ip', 't', [], 'many'),
    new TypeError('mostRules: expected an integer from 0 to 4294967295, found "many"'),
  );
  t.throws(() => call('nftElements', 'ip', 't'), new TypeError('sets: expected an array, found undefined'));
  t.throws(() => call('nftCompile', 4), new TypeError('family: expected "ip" or "ip6", found 4'));
  t.end();
});

t.test('an exception in a getter reaches the caller', (t) => {
  const thrown = new Error('from the getter');
  const hostile = new Proxy(
    {},
    {
      get: (): never => {
        throw thrown;
      },
    },
  );
  t.throws(() => call('nftTransact', hostile), thrown);
  t.throws(() => call('nftTransact', transaction(hostile)), thrown);
  const comments = Object.defineProperty([null], '0', {
    get: (): never => {
      throw thrown;
    },
  }) as readonly null[];
  const set = { name: 's', type: 'hash:ip', family: 'IPv4' } as const;
  t.throws(() => ipset.ipsetApply([{ type: 'add', set, elements: new Uint8Array(4), comments }] as never), thrown);
  t.end();
});

t.test('bytes are copied before a native call returns', (t) => {
  const keys = new Uint8Array(8).fill(7);
  const before = Buffer.from(
    addon.nftEncode({ family: 'ip', table: 't', operations: [{ ...ELEMENTS, type: 'elements', verb: 'add', keys }] }),
  );
  t.ok(before.includes(Buffer.alloc(4, 7)));
  const detached = new Uint8Array(8);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  t.throws(() => call('nftEncode', transaction({ ...ELEMENTS, keys: detached })), TypeError);
  t.end();
});

t.test('an nft command that does not compile is an ERR_NFT_JSON with its path', async (t) => {
  const commands = [{ add: { chain: { family: 'ip', table: 't', name: 'c', hook: 'input' } } }];
  const path = 'commands[0].add.chain.type: expected a string, found nothing';
  const fields = { code: 'ERR_NFT_JSON', errno: null, kernelMessage: null, object: null, element: null };
  t.throws(() => addon.nftCompile('ip', 't', commands), {
    ...fields,
    operation: 'nft compile',
    index: null,
    message: `nft compile: ${path}`,
  });
  const refused = {
    ...fields,
    operation: 'nft transaction',
    index: 0,
    message: `nft transaction: operations[0].${path}`,
  };
  const bad = { family: 'ip', table: 't', operations: [{ type: 'commands', commands }] } as const;
  t.throws(() => addon.nftEncode(bad), refused);
  await t.rejects(addon.nftTransact(bad), refused);
  await addon.nftTransact(bad).catch((error: unknown) => t.ok(isNativeError(error)));
  t.throws(() => addon.nftCompile('ip', 't', [{}]), {
    message: 'nft compile: commands[0]: expected an object with one member, found an empty object',
  });
});
