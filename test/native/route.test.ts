// needs: ip
import '../support/namespace.js';

import { writeFileSync } from 'node:fs';
import t from 'tap';
import { addressFromBytes } from '../../src/base/ip.js';
import type { RouteChange } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { eventually } from '../support/lab/lab.js';
import { run } from '../support/run.js';
import { packed } from '../support/virtual-services.js';

const { route } = loadAddon();

async function held(link: string): Promise<readonly string[] | undefined> {
  return (await route.linkAddresses(link))?.map(addressFromBytes).sort();
}

t.test('link addresses are listed: of a link that is down, deleted or missing', async (t) => {
  t.equal(await route.linkAddresses('kube-ipvs0'), null);
  t.equal(await route.linkDelete('kube-ipvs0'), false);
  run('ip link add kube-ipvs0 type veth peer name other');
  t.same(await held('kube-ipvs0'), []);
  run('ip address add 10.96.0.1/32 dev kube-ipvs0');
  run('ip address add fd00:10:96::1/128 dev kube-ipvs0');
  run('ip address add 10.96.0.9/32 dev other');
  t.same(await held('kube-ipvs0'), ['10.96.0.1', 'fd00:10:96::1']);
  t.equal(await route.linkEnsureDummy('kube-ipvs0'), false);
  t.equal(await route.linkDelete('kube-ipvs0'), true);
  t.equal(await route.linkAddresses('kube-ipvs0'), null);
});

t.test('addresses are added and removed, each with its own answer', async (t) => {
  run('ip link add kube-ipvs0 type veth peer name other');
  const refusals = (
    await route.addressApply('kube-ipvs0', [
      { type: 'add', family: 'IPv4', addresses: packed('10.96.0.1', '10.96.0.2', '10.96.0.1', '10.96.0.3') },
      { type: 'add', family: 'IPv6', addresses: packed('fd00:10:96::1', 'fd00:10:96::1', 'fd00:10:96::2') },
      { type: 'delete', family: 'IPv4', addresses: packed('10.96.0.2', '10.96.0.9') },
      { type: 'delete', family: 'IPv6', addresses: packed('fd00:10:96::9', 'fd00:10:96::2') },
    ])
  ).refused;
  t.same(
    refusals.map(({ index, element, errno, object }) => [index, element, errno, object]),
    [
      [0, 2, 'EEXIST', 'add address 10.96.0.1 on kube-ipvs0'],
      [1, 1, 'EEXIST', 'add address fd00:10:96::1 on kube-ipvs0'],
      [2, 1, 'EADDRNOTAVAIL', 'delete address 10.96.0.9 on kube-ipvs0'],
      [3, 0, 'EADDRNOTAVAIL', 'delete address fd00:10:96::9 on kube-ipvs0'],
    ],
  );
  t.same(await held('kube-ipvs0'), ['10.96.0.1', '10.96.0.3', 'fd00:10:96::1']);
  const shown = run('ip -o address show dev kube-ipvs0');
  t.match(shown, /inet 10\.96\.0\.1\/32 scope global/);
  t.match(shown, /inet6 fd00:10:96::1\/128 scope global/);
  run('ip address add 192.0.2.7/24 dev other');
  const all = await route.allAddresses();
  t.same(all.map(({ link, ipv4, ipv6 }) => [link, ipv4.length, ipv6.length]).sort(), [
    ['kube-ipvs0', 8, 16],
    ['other', 4, 0],
  ]);
  await t.rejects(route.addressApply('missing', []), { code: 'ERR_NETLINK', errno: 'ENODEV' });
  t.throws(
    () => route.addressApply('other', [{ type: 'add', family: 'IPv4', addresses: new Uint8Array(5) }]),
    TypeError,
  );
  await route.linkDelete('kube-ipvs0');
});

t.test('a link with IPv6 disabled accepts IPv4 addresses only', async (t) => {
  run('ip link add kube-ipvs0 type veth peer name other');
  writeFileSync('/proc/sys/net/ipv6/conf/kube-ipvs0/disable_ipv6', '1');
  const { refused } = await route.addressApply('kube-ipvs0', [
    { type: 'add', family: 'IPv6', addresses: packed('fd00:10:96::1', 'fd00:10:96::2') },
    { type: 'add', family: 'IPv4', addresses: packed('10.96.0.1') },
    { type: 'delete', family: 'IPv6', addresses: packed('fd00:10:96::1') },
  ]);
  t.same(
    refused.map(({ index, element, errno }) => [index, element, errno]),
    [
      [0, 0, 'EACCES'],
      [0, 1, 'EACCES'],
      [2, 0, 'EADDRNOTAVAIL'],
    ],
  );
  t.same(await held('kube-ipvs0'), ['10.96.0.1']);
  await route.linkDelete('kube-ipvs0');
});

t.test('thousands of addresses are added at once', async (t) => {
  run('ip link add kube-ipvs0 type veth peer name other');
  const addresses = new Uint8Array(4 * 2000);
  for (let at = 0; at < 2000; at++) addresses.set([10, 97, at >> 8, at & 0xff], at * 4);
  const sent = { refused: [], bytes: 2000 * 40 };
  t.same(await route.addressApply('kube-ipvs0', [{ type: 'add', family: 'IPv4', addresses }]), sent);
  t.equal((await held('kube-ipvs0'))?.length, 2000);
  t.equal((await route.addressApply('kube-ipvs0', [{ type: 'add', family: 'IPv4', addresses }])).refused.length, 2000);
  t.same(await route.addressApply('kube-ipvs0', [{ type: 'delete', family: 'IPv4', addresses }]), sent);
  t.same(await held('kube-ipvs0'), []);
  await route.linkDelete('kube-ipvs0');
});

t.test('the route watch reports foreign changes of links and addresses, and not its own', async (t) => {
  const changes: RouteChange[] = [];
  const reported = (link: string): Promise<unknown> =>
    eventually(`a change of ${link}`, () => Promise.resolve(changes.some(({ links }) => links.includes(link)) || null));
  const stop = route.routeWatch((change) => changes.push(change));
  run('ip link add kube-ipvs0 type veth peer name other');
  await reported('kube-ipvs0');
  await reported('other');
  run('ip link set other up');
  changes.length = 0;
  await route.addressApply('kube-ipvs0', [
    { type: 'add', family: 'IPv4', addresses: packed('10.96.0.1', '10.96.0.2') },
  ]);
  await route.linkDelete('no-such-link');
  run('ip address add 192.0.2.7/24 dev other');
  await reported('other');
  t.notOk(
    changes.some(({ links }) => links.includes('kube-ipvs0')),
    'own changes are not reported',
  );
  run('ip address delete 10.96.0.2/32 dev kube-ipvs0');
  await reported('kube-ipvs0');
  changes.length = 0;
  run('ip address add fd00:10:96::1/128 dev kube-ipvs0');
  await reported('kube-ipvs0');
  t.notOk(changes.some(({ missed }) => missed));
  stop();
  stop();
  changes.length = 0;
  run('ip link delete kube-ipvs0');
  await route.allAddresses();
  t.same(changes, []);
});
