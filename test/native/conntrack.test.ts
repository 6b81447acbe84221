// needs: nft, ip
import '../support/namespace.js';

import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import t from 'tap';

import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { address, table } from '../dataplane/conntrack-records.js';
import {
  addon,
  TCP,
  UDP,
  SCTP,
  run,
  type Tuple,
  insert,
  flush,
  shown,
  printed,
  filter,
  listed,
} from './conntrack-flows.js';

run('ip', 'link', 'set', 'lo', 'up');
for (const own of ['10.1.0.1/32', '10.1.0.2/32', '10.244.1.10/32', '10.244.2.10/32'])
  run('ip', 'address', 'add', own, 'dev', 'lo');
for (const own of ['fd00:1::1/128', 'fd00:1::2/128', 'fd00:244:1::a/128', 'fd00:244:2::a/128']) {
  run('ip', 'address', 'add', own, 'dev', 'lo', 'nodad');
}
// Where packets to frontends go without rules: out, and lost.
run('ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'nowhere');
for (const link of ['out', 'nowhere']) run('ip', 'link', 'set', link, 'arp', 'off', 'up');
run('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'out');
run('ip', 'route', 'add', 'fd00:96::/64', 'dev', 'out');
// Connections are tracked in a namespace only once a rule asks for it.
execFileSync('nft', ['-f', '-'], {
  input: 'table inet track { chain out { type filter hook output priority 0; ct state new accept; }; }',
});

const OTHERS: readonly Tuple[] = [
  { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.11', port: 53 },
  { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.10', port: 54 },
  { protocol: 'tcp', from: '10.1.0.1', to: '10.96.0.10', port: 53 },
  { protocol: 'sctp', from: '10.1.0.1', to: '10.96.0.10', port: 53 },
  { protocol: 'udp', from: 'fd00::1', to: 'fd00:96::a', port: 53 },
];
const DNS: readonly Tuple[] = [
  { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.10', port: 53, by: ['10.244.1.10', 5353] },
  { protocol: 'udp', from: '10.1.0.2', to: '10.96.0.10', port: 53 },
  { protocol: 'udp', from: '10.1.0.1', to: '10.96.0.10', port: 53, zone: 7 },
];

t.test('conntrackList() lists what conntrack(8) lists, through every filter', async (t) => {
  flush();
  [...OTHERS, ...DNS].forEach(insert);
  t.same(await listed('IPv4', UDP), shown('IPv4', '-p', 'udp'));
  t.equal((await listed('IPv4', UDP)).length, 5);
  t.same(await listed('IPv4', UDP, '10.96.0.10'), shown('IPv4', '-p', 'udp', '-d', '10.96.0.10'));
  t.same(await listed('IPv4', UDP, null, 54), shown('IPv4', '-p', 'udp', '--dport', '54'));
  t.same(await listed('IPv4', UDP, '10.96.0.10', 53), shown('IPv4', '-p', 'udp', '-d', '10.96.0.10', '--dport', '53'));
  t.equal((await listed('IPv4', UDP, '10.96.0.10', 53)).length, 3);
  t.same(await listed('IPv4', SCTP, '10.96.0.10', 53), shown('IPv4', '-p', 'sctp'));
  t.equal((await listed('IPv4', SCTP)).length, 1);
  t.same(await listed('IPv6', UDP, 'fd00:96::a', 53), shown('IPv6', '-p', 'udp'));
  t.equal((await listed('IPv6', UDP)).length, 1);
  t.same(await listed('IPv6', SCTP), []);
  t.same(await listed('IPv4', UDP, '10.96.9.9'), []);
});

t.test('conntrackDelete() deletes the given flows and no others', async (t) => {
  flush();
  OTHERS.forEach(insert);
  const others = { IPv4: shown('IPv4'), IPv6: shown('IPv6') };
  DNS.forEach(insert);
  const { records } = await addon.conntrackList(filter('IPv4', UDP, '10.96.0.10', 53));
  t.same(await addon.conntrackDelete('ip', records), { deleted: 3, missing: 0 });
  t.same({ IPv4: shown('IPv4'), IPv6: shown('IPv6') }, others);
  t.same(await addon.conntrackDelete('ip', records), { deleted: 0, missing: 3 }, 'once more finds nothing');
  t.same(await addon.conntrackDelete('ip', new Uint8Array(0)), { deleted: 0, missing: 0 });

  const v6 = await addon.conntrackList(filter('IPv6', UDP, null, null));
  t.same(await addon.conntrackDelete('ip6', v6.records), { deleted: 1, missing: 0 });
  const sctp = await addon.conntrackList(filter('IPv4', SCTP, null, null));
  t.same(await addon.conntrackDelete('ip', sctp.records), { deleted: 1, missing: 0 });
  t.same(
    shown('IPv4').map((line) => line.split(' ')[0]),
    ['tcp', 'udp', 'udp'],
  );
});

for (const { family, from, to } of [
  { family: 'IPv4', from: '10.244.0.7', to: '10.96.0.10' },
  { family: 'IPv6', from: 'fd00:244::7', to: 'fd00:96::a' },
] as const) {
  t.test(`conntrackList() filters ${family} flows without a reply, and has the state of each`, async (t) => {
    flush();
    insert({ protocol: 'tcp', from, to, port: 80, state: 'SYN_SENT' });
    insert({ protocol: 'tcp', from, to, port: 81, state: 'SYN_SENT', replied: true });
    insert({ protocol: 'tcp', from, to, port: 82, replied: true });
    insert({ protocol: 'tcp', from, to, port: 83 });
    insert({ protocol: 'sctp', from, to, port: 80, state: 'COOKIE_WAIT' });
    const size = family === 'IPv4' ? 36 : 84;
    const states = async (asked: ReturnType<typeof filter>): Promise<readonly string[]> => {
      const { records } = await addon.conntrackList(asked);
      const starts = Array.from({ length: records.length / size }, (_, index) => index * size);
      const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
      return starts.map((at) => `${view.getUint16(at + size - 18)} in ${view.getUint8(at + size - 9)}`).sort();
    };
    t.same(await states(filter(family, TCP, null, null)), ['80 in 1', '81 in 1', '82 in 3', '83 in 3']);
    t.same(await states(filter(family, TCP, null, null, true)), ['80 in 1', '83 in 3']);
    t.same(await states(filter(family, TCP, to, 80, true)), ['80 in 1']);
    t.same(await states(filter(family, SCTP, null, null)), ['80 in 2']);
    const { records } = await addon.conntrackList(filter(family, TCP, to, 80, true));
    t.same(await addon.conntrackDelete(family === 'IPv4' ? 'ip' : 'ip6', records), { deleted: 1, missing: 0 });
    t.same(await states(filter(family, TCP, null, null, true)), ['83 in 3']);
  });
}

t.test('conntrackDelete() deletes only the flow of the given zone', async (t) => {
  flush();
  DNS.forEach(insert);
  const before = shown('IPv4');
  const { records } = await addon.conntrackList(filter('IPv4', UDP, null, null));
  const zoned = printed('IPv4', records).findIndex((line) => line.includes('zone 7'));
  t.ok(zoned >= 0);
  const size = records.length / 3;
  const lines = [0, 1, 2].map((index) => records.slice(index * size, (index + 1) * size));
  const record = lines.find((line) => printed('IPv4', line)[0]?.includes('zone 7') === true);
  t.same(await addon.conntrackDelete('ip', record!), { deleted: 1, missing: 0 });
  t.same(
    shown('IPv4'),
    before.filter((line) => !line.includes('zone 7')),
  );
});

t.test('conntrackDelete() keeps a flow that has the same tuple and is newer than the listing', async (t) => {
  flush();
  const [flow] = DNS;
  insert(flow!);
  const { records } = await addon.conntrackList(filter('IPv4', UDP, null, null));
  const old = shown('IPv4');
  // Ids come from the kernel's memory addresses: a successor may get its predecessor's, and then is no other flow to anyone.
  let successor = old;
  for (let attempt = 0; attempt < 20 && successor.join() === old.join(); attempt++) {
    run('conntrack', '-D', '-p', 'udp');
    insert({ protocol: 'udp', from: '10.9.9.9', to: '10.9.9.8', port: attempt + 1 });
    insert(flow!);
    successor = shown('IPv4', '-d', '10.96.0.10');
  }
  t.not(successor.join(), old.join());
  t.same(await addon.conntrackDelete('ip', records), { deleted: 0, missing: 1 });
  t.same(shown('IPv4', '-d', '10.96.0.10'), successor);
});

/** A client that keeps its source port, and so its flow. */
async function client(from: string): Promise<Socket> {
  const socket = createSocket(from.includes(':') ? 'udp6' : 'udp4');
  socket.bind(0, from);
  await once(socket, 'listening');
  return socket;
}

async function send(socket: Socket, port: number, to: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.send('?', port, to, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}

t.test('conntrackDelete() deletes thousands of flows of a real socket', async (t) => {
  flush();
  const count = 3000;
  const socket = await client('127.0.0.1');
  t.teardown(() => socket.close());
  // Nobody listens: what comes back is ICMP, of which only the kernel takes note.
  socket.on('error', () => undefined);
  for (let index = 0; index < count; index++) {
    await send(socket, 53, `127.1.${index >> 8}.${index & 255}`).catch(() => undefined);
  }
  const listing = await addon.conntrackList(filter('IPv4', UDP, null, 53));
  t.same(printed('IPv4', listing.records), shown('IPv4', '-p', 'udp', '--dport', '53'));
  t.ok(listing.count > count * 0.9, `${listing.count} flows`);
  // Every second one goes by itself meanwhile.
  const gone = run('conntrack', '-D', '-p', 'udp', '-d', '127.1.0.0/24').split('\n').length - 1;
  t.ok(gone > 0);
  t.same(await addon.conntrackDelete('ip', listing.records), { deleted: listing.count - gone, missing: gone });
  t.same(shown('IPv4', '-p', 'udp', '--dport', '53'), []);
});

for (const { family, from, frontend, own, endpoints, nat } of [
  {
    family: 'IPv4',
    from: '10.1.0.1',
    frontend: '10.96.0.10',
    own: '10.1.0.2',
    endpoints: ['10.244.1.10', '10.244.2.10'],
    nat: 'ip',
  },
  {
    family: 'IPv6',
    from: 'fd00:1::1',
    frontend: 'fd00:96::a',
    own: 'fd00:1::2',
    endpoints: ['fd00:244:1::a', 'fd00:244:2::a'],
    nat: 'ip6',
  },
] as const) {
  t.test(`a UDP client reaches the new endpoint after a conntrack pass, ${family}`, async (t) => {
    flush();
    const reached: string[] = [];
    for (const endpoint of endpoints) {
      const server = createSocket(family === 'IPv4' ? 'udp4' : 'udp6', (message, remote) => {
        reached.push(endpoint);
        server.send(message, remote.port, remote.address);
      });
      server.bind(5353, endpoint);
      await once(server, 'listening');
      t.teardown(() => server.close());
    }
    const route = (endpoint: string | undefined): void => {
      const to = family === 'IPv4' ? `${endpoint ?? ''}:5353` : `[${endpoint ?? ''}]:5353`;
      const rule = (at: string, port: number): string => `${nat} daddr ${at} udp dport ${port} dnat to ${to};`;
      const rules = endpoint === undefined ? '' : rule(frontend, 53) + rule(own, 30053);
      const chain = `chain out { type nat hook output priority -100; ${rules} };`;
      execFileSync('nft', ['-f', '-'], {
        input: `table ${nat} t {}\ndelete table ${nat} t\ntable ${nat} t { ${chain} }`,
      });
    };
    const sockets = [await client(from), await client(from)] as const;
    t.teardown(() => {
      for (const socket of sockets) socket.close();
    });
    for (const socket of sockets) socket.on('error', () => undefined);
    /** Who answers both clients, at the frontend and at the node port, when so many answers are due. */
    const ask = async (due: 0 | 2): Promise<string[]> => {
      reached.length = 0;
      await send(sockets[0], 53, frontend).catch(() => undefined);
      await send(sockets[1], 30053, own).catch(() => undefined);
      const deadline = Date.now() + (due === 0 ? 50 : 60_000);
      while (Date.now() < deadline && (due === 0 || reached.length < due)) await setTimeout(5);
      return [...reached];
    };
    let listings = 0;
    const reconciler = new ConntrackReconciler({
      conntrackList: (filter) => {
        listings++;
        return addon.conntrackList(filter);
      },
      conntrackDelete: (...flows) => addon.conntrackDelete(...flows),
    });
    const keys = [frontendKey(address(frontend), 53, 'UDP'), frontendKey(null, 30053, 'UDP')];
    const pass = async (to: readonly string[] | null): Promise<number> => {
      const list = to?.map((endpoint) => `${endpoint} 5353`) ?? [];
      const frontends =
        to === null
          ? []
          : [
              { at: `${frontend} 53`, to: list },
              { at: 'nodeport 30053', to: list },
            ];
      listings = 0;
      const report = await reconciler.reconcile({
        table: table(family, frontends),
        isNodePortAddress: (candidate) => candidate === own,
        full: false,
        changed: new Set(keys),
      });
      t.same(report.errors, []);
      t.equal(listings, 1);
      return report.deleted;
    };

    route(undefined);
    t.same(await ask(0), [], 'no rules yet');
    route(endpoints[0]);
    t.same(await ask(0), [], 'the flows from before the rules do not meet them');
    t.equal(await pass([endpoints[0]]), 2);
    t.same(await ask(2), [endpoints[0], endpoints[0]]);
    t.equal(await pass([...endpoints]), 0, 'a second endpoint takes no flow away');

    route(endpoints[1]);
    t.same(await ask(2), [endpoints[0], endpoints[0]], 'the old flows do not meet the new rules');
    t.equal(await pass([endpoints[1]]), 2);
    t.same(await ask(2), [endpoints[1], endpoints[1]]);

    t.equal(await pass(null), 2, 'the Service is gone');
    t.same(await listed(family, UDP, frontend), []);
  });
}

function complaint(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return String(error);
  }
  return 'none';
}

/** Calls past the compiler's eyes. */
function listAnything(...args: readonly unknown[]): unknown {
  const list: unknown = Reflect.get(addon, 'conntrackList');
  if (typeof list !== 'function') throw new Error('no conntrackList');
  return Reflect.apply(list, addon, args);
}

t.test('conntrack: wrong fields are named', (t) => {
  const right = filter('IPv4', UDP, '10.96.0.10', 53);
  const cases: readonly [Record<string, unknown>, string][] = [
    [{ family: 'inet' }, 'filter.family: expected "ip" or "ip6", found "inet"'],
    [{ protocol: 256 }, 'filter.protocol: expected an integer from 0 to 255, found 256'],
    [
      { destination: new Uint8Array(16) },
      'filter.destination: expected Uint8Array of 4 bytes (an address of the family), found a typed array of 16 bytes',
    ],
    [{ destination: '10.96.0.10' }, 'filter.destination: expected Uint8Array, found "10.96.0.10"'],
    [{ port: -1 }, 'filter.port: expected an integer from 0 to 65535, found -1'],
    [{ port: undefined }, 'filter.port: expected an integer from 0 to 65535, found undefined'],
    [{ unanswered: 1 }, 'filter.unanswered: expected a boolean, found 1'],
  ];
  for (const [wrong, message] of cases) {
    const given: unknown = { ...right, ...wrong };
    t.equal(
      complaint(() => listAnything(given)),
      `TypeError: ${message}`,
    );
  }
  t.throws(() => listAnything(), TypeError);
  t.equal(
    complaint(() => addon.conntrackDelete('ip6', new Uint8Array(36))),
    'TypeError: records: expected whole records of 84 bytes, found a typed array of 36 bytes',
  );
  t.end();
});

t.test('conntrack calls without CAP_NET_ADMIN are refused at once', (t) => {
  const script = `
    import { loadAddon } from ${JSON.stringify(new URL('../../src/native/load.js', import.meta.url).href)};
    const addon = loadAddon().conntrack;
    const filter = { family: 'ip', protocol: 17, destination: null, port: null, unanswered: false };
    const outcomes = await Promise.allSettled([addon.conntrackList(filter), addon.conntrackDelete('ip', new Uint8Array(36 * 300))]);
    console.log(JSON.stringify(outcomes.map(({ reason }) => ({ ...reason, message: reason?.message }))));
  `;
  // A fresh user namespace has rights over itself, not over the network namespace of its parent.
  const args = ['--user', '--map-root-user', process.execPath, '--input-type=module', '--eval', script];
  const start = Date.now();
  const outcomes: unknown = JSON.parse(run('unshare', ...args));
  const denied = { code: 'ERR_NETLINK', errno: 'EPERM', kernelMessage: null, element: null };
  t.match(outcomes, [
    { ...denied, operation: 'conntrack list', object: null, index: null },
    { ...denied, operation: 'conntrack delete', object: /^protocol 0 0\.0\.0\.0:0 > /, index: 0 },
  ]);
  t.ok(Date.now() - start < 20_000, 'no waiting for answers that never come');
  t.end();
});
