import t from 'tap';
import type { Family } from '../../../src/base/ip.js';
import { differences } from '../../../src/dataplane/nftables/differences.js';
import { nftablesDataplane } from '../../../src/dataplane/nftables/driver.js';
import { NO_ELEMENTS } from '../../../src/dataplane/nftables/frontend-elements.js';
import { emptyTable, readListing, type ListedTable } from '../../../src/dataplane/nftables/listing.js';
import type { NftCommand, NftElementsListing, NftTableListing } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { SeededRandom } from '../../support/random.js';
import { address, service, serviceCIDR, slice, node } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** Reading a listing back, comparing two, and printing one. */

function rows(family: Family): readonly Row[] {
  const four = family === 'IPv4';
  const pod = (last: number): string => (four ? `10.0.1.${last}` : `fd00:10::${last}`);
  const cluster = (last: number): string => (four ? `10.96.0.${last}` : `fd00:96::${last}`);
  return [
    node('me', [four ? '192.168.0.2' : '2001:db8::1']),
    serviceCIDR('kubernetes', [four ? '10.96.0.0/12' : 'fd00:96::/112']),
    service('plain', { clusterIPs: [cluster(1)] }),
    slice(
      'plain',
      [1, 2, 3, 4, 5].map((last) => ({ address: pod(last), node: last === 1 ? 'me' : 'other' })),
    ),
    service('all', {
      clusterIPs: [cluster(2)],
      externalIPs: [four ? '198.51.100.1' : '2001:db8:1::1'],
      loadBalancer: [four ? '198.51.100.2' : '2001:db8:1::2'],
      sourceRanges: four ? ['203.0.113.0/24', '10.0.0.0/8', '192.168.0.2/32'] : ['2001:db8:2::/64', '2001:db8::1/128'],
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
      [6, 7].map((last) => ({ address: pod(last), node: last === 6 ? 'me' : 'other' })),
      {
        ports: [
          { name: 'a', port: 8080 },
          { name: 'b', port: 5353, protocol: 'UDP' },
        ],
      },
    ),
    service('here', { clusterIPs: [cluster(3)], internalTrafficPolicy: 'Local' }),
    slice('here', [{ address: pod(8), node: 'other' }]),
    service('nobody', { clusterIPs: [cluster(4)] }),
  ];
}

for (const family of ['IPv4', 'IPv6'] as const) {
  t.test(`${family}: dump prints the same as plan`, async (t) => {
    const rig = new Rig(new FakeKernel(compiler), family);
    rig.commit(rows(family));
    await rig.sync();
    const dump = await rig.dataplane.dump(rig.table);
    t.ok(dump.length > 40);
    t.same(await rig.difference(), []);
    t.same([...dump].sort(), dump, 'sorted');
  });

  t.test(`${family}: the order of a listing does not matter`, async (t) => {
    const rig = new Rig(new FakeKernel(compiler), family);
    rig.commit(rows(family));
    await rig.sync();
    const listing = await rig.kernel.nftList(family === 'IPv4' ? 'ip' : 'ip6', 'kube-proxy', null);
    if (listing === null) throw new Error('no table');
    const read = readListing(family, listing);
    for (const seed of [1, 2, 3]) t.same(differences(read, readListing(family, shuffled(listing, seed))), []);
    t.equal(read.unexpected.size, 0);
    t.ok(read.frontends.size > 10);
  });
}

/** The same listing with the elements of every set in another order. */
function shuffled(listing: NftTableListing, seed: number): NftTableListing {
  const random = new SeededRandom(seed);
  const sets = listing.sets.map((set) => {
    const { elements } = set;
    if (elements === null) return set;
    const order = random.shuffled([...Array(elements.count).keys()]);
    const rows = (bytes: Uint8Array | null, size: number): Uint8Array | null =>
      bytes && Buffer.concat(order.map((index) => bytes.subarray(index * size, (index + 1) * size)));
    const listed: NftElementsListing = {
      count: elements.count,
      keys: rows(elements.keys, set.keyLength) ?? new Uint8Array(0),
      keyEnds: rows(elements.keyEnds, set.keyLength),
      data: rows(elements.data, set.dataLength),
      verdicts: elements.verdicts && order.map((index) => elements.verdicts?.[index] ?? ''),
      comments: elements.comments && order.map((index) => elements.comments?.[index] ?? null),
      packets: elements.packets && Float64Array.from(order, (index) => elements.packets?.[index] ?? 0),
    };
    return { ...set, elements: listed };
  });
  return { ...listing, sets };
}

t.test("a map of a foreign type with a name of pointsman's has unexpected elements only", (t) => {
  const read = (keyLength: number, dataLength: number): unknown => {
    const elements = { count: 2, keys: new Uint8Array(2 * keyLength), data: new Uint8Array(2 * dataLength) };
    elements.keys.fill(1, keyLength);
    const none = { keyEnds: null, verdicts: null, comments: null, packets: null };
    const set = { name: 'endpoints-0', declaration: '', keyLength, dataLength, elements: { ...elements, ...none } };
    return [...readListing('IPv4', { chains: [], sets: [set], objects: [] }).unexpected.values()].map(({ key }) => key);
  };
  for (const [keyLength, dataLength] of [
    [2, 8],
    [6, 8],
    [16, 2],
    [16, 4],
    [4, 8],
  ] as const) {
    t.same(read(keyLength, dataLength), ['\0'.repeat(keyLength), '\x01'.repeat(keyLength)]);
  }
  t.end();
});

t.test('objects that differ from the plan are printed as they are', async (t) => {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit(rows('IPv4'));
  await rig.sync();
  const run = (...commands: readonly NftCommand[]): Promise<unknown> =>
    rig.kernel.nftTransact({
      family: 'ip',
      table: 'kube-proxy',
      operations: [{ type: 'commands', commands }],
    });
  const where = { family: 'ip', table: 'kube-proxy' };
  await run(
    { flush: { set: { ...where, name: 'frontends' } } },
    { flush: { set: { ...where, name: 'rejected-frontends' } } },
  );
  const lines = await rig.difference();
  t.ok(lines.includes('+ IPv4 kernel frontend 10.96.0.1:80/TCP has elements and the verdict none'));
  t.ok(lines.includes('- IPv4 frontend 10.96.0.1:80/TCP service default/plain ClusterIP'));
  await run({ flush: { chain: { ...where, name: 'dispatch' } } });
  t.ok((await rig.difference()).includes('- IPv4 node masquerade-mark 0x00004000'), 'the node is not as the rules are');
  await rig.sync(true);
  t.same(await rig.difference(), []);
});

t.test('each kind of difference is named', (t) => {
  const change = (edit: (table: ListedTable) => void): readonly string[] => {
    const known = sample();
    const listed = sample();
    edit(listed);
    return differences(known, listed);
  };
  t.same(
    change(() => undefined),
    [],
  );
  t.same(
    change(({ chains }) => chains.delete('a')),
    ['chain a was lost'],
  );
  t.same(
    change(({ chains }) => chains.set('a', 'other')),
    ['chain a was altered'],
  );
  t.same(
    change(({ chains }) => chains.set('b', '')),
    ['chain b was added'],
  );
  t.same(
    change(({ sets }) => {
      sets.clear();
    }),
    ['set s was lost'],
  );
  t.same(
    change(({ clusterAddresses }) => clusterAddresses.set(address('10.0.0.9'), true)),
    ['cluster address 10.0.0.9 was added'],
  );
  t.same(
    change(({ hairpinAddresses }) => {
      hairpinAddresses.clear();
    }),
    ['hairpin address 10.0.0.2 was lost'],
  );
  t.same(
    change(({ unexpected }) => unexpected.set('unexpected', { set: 's', key: 'x' })),
    ['element of s is not ours'],
  );
  const fields = {
    chain: 'pick-2',
    comment: 'c',
    rejected: true,
    dropped: true,
    restricted: true,
    admitted: ['x'],
    finds: 'find-clients-10.96.0.10-tcp-80',
    findsLocal: 'find-clients-nodeport-tcp-30080',
    remembers: 'remember-clients-60-10.96.0.10-tcp-80',
    stickyLocals: ['x'],
    endpoints: new Uint8Array(6),
    localEndpoints: new Uint8Array(6),
  };
  for (const [name, value] of Object.entries(fields)) {
    t.same(
      change(({ frontends }) => frontends.set('f', { ...NO_ELEMENTS, [name]: value })),
      ['frontend f was altered'],
      name,
    );
  }
  t.end();
});

function sample(): ListedTable {
  const table = emptyTable();
  table.chains.set('a', 'rule');
  table.sets.set('s', 'set');
  table.frontends.set('f', NO_ELEMENTS);
  table.clusterAddresses.set(address('10.0.0.1'), true);
  table.hairpinAddresses.set(address('10.0.0.2'), true);
  return table;
}

t.test('a long list of differences is cut, and says by how much', (t) => {
  const known = emptyTable();
  for (let index = 0; index < 50; index++) known.chains.set(`c${index}`, '');
  const lines = differences(known, emptyTable());
  t.equal(lines.length, 21);
  t.equal(lines[20], '… and 30 more');
  t.end();
});

t.test('names of any length read the same in plan and dump', async (t) => {
  const rig = new Rig();
  const long = (letter: string): string => letter.repeat(63);
  rig.commit([
    ...NODE_ROWS,
    service(long('a'), { namespace: long('b'), clusterIPs: ['10.96.0.10'], ports: [{ name: long('c'), port: 80 }] }),
  ]);
  await rig.sync();
  t.same(await rig.difference(), []);
});

t.test('a table listed ahead of the first sync is not listed again, unless it was touched', async (t) => {
  const kernel = new FakeKernel(compiler);
  const before = new Rig(kernel);
  before.commit(rows('IPv4'));
  await before.sync();
  for (const touched of [false, true]) {
    let listings = 0;
    const counting = {
      nftCompile: kernel.nftCompile.bind(kernel),
      nftTransact: kernel.nftTransact.bind(kernel),
      nftGeneration: kernel.nftGeneration.bind(kernel),
      nftMaxBatch: kernel.nftMaxBatch.bind(kernel),
      nftElements: kernel.nftElements.bind(kernel),
      nftList: (...parameters: Parameters<typeof kernel.nftList>) => {
        // Not that of clients.
        if (parameters[2]?.includes('frontends')) listings++;
        return kernel.nftList(...parameters);
      },
    };
    const rig = new Rig(kernel);
    rig.dataplane = nftablesDataplane(counting, 'IPv4');
    rig.commit(rows('IPv4'));
    rig.dataplane.prepare();
    for (let turn = 0; turn < 10 && listings === 0; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.equal(listings, 1);
    if (touched) {
      const intruder = new Rig(kernel);
      intruder.commit(rows('IPv4').filter(({ kind }) => kind !== 'EndpointSlice'));
      await intruder.sync();
    }
    const report = await rig.sync();
    t.equal(listings, touched ? 2 : 1);
    t.equal(report.elementOperations > 0, touched);
    t.same(await rig.difference(), []);
  }
});
