import '../support/namespace.js';

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import type { IpvsListedService } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { addressFromBytes } from '../../src/base/ip.js';

const { ipset, ipvs, route } = loadAddon();

/** Runs a program that must succeed. */
function run(command: string, input = ''): string {
  const [program = '', ...args] = command.split(' ');
  const { status, stdout, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr}`);
  return stdout;
}

t.test('sets: names, destroyed, in use, missing', async (t) => {
  run('ipset create KUBE-CLUSTER-IP hash:ip,port');
  run('ipset create KUBE-6-CLUSTER-IP hash:ip,port family inet6');
  run('ipset create OTHER hash:ip');
  t.same([...(await ipset.ipsetNames())].sort(), ['KUBE-6-CLUSTER-IP', 'KUBE-CLUSTER-IP', 'OTHER']);
  run('iptables-nft -A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT');
  await t.rejects(ipset.ipsetDestroy('KUBE-CLUSTER-IP'), {
    code: 'ERR_NETLINK',
    errno: 'EBUSY',
    operation: 'ipset destroy',
  });
  run('iptables-nft -F INPUT');
  t.equal(await ipset.ipsetDestroy('KUBE-CLUSTER-IP'), true);
  t.equal(await ipset.ipsetDestroy('KUBE-CLUSTER-IP'), false);
  t.equal(await ipset.ipsetDestroy('KUBE-6-CLUSTER-IP'), true);
  t.same(await ipset.ipsetNames(), ['OTHER']);
  t.throws(() => ipset.ipsetDestroy('x'.repeat(32)), TypeError);
});

t.test('links: addresses of one that is down, deleted, missing', async (t) => {
  t.equal(await route.linkAddresses('kube-ipvs0'), null);
  t.equal(await route.linkDelete('kube-ipvs0'), false);
  run('ip link add kube-ipvs0 type veth peer name other');
  t.same(await route.linkAddresses('kube-ipvs0'), []);
  run('ip address add 10.96.0.1/32 dev kube-ipvs0');
  run('ip address add fd00:10:96::1/128 dev kube-ipvs0');
  run('ip address add 10.96.0.9/32 dev other');
  const addresses = await route.linkAddresses('kube-ipvs0');
  t.same(addresses?.map(addressFromBytes).sort(), ['10.96.0.1', 'fd00:10:96::1']);
  t.equal(await route.linkDelete('kube-ipvs0'), true);
  t.equal(await route.linkAddresses('kube-ipvs0'), null);
});

t.test('without ip_vs there are no virtual services, and none is loaded to find out', async (t) => {
  const before = existsSync('/proc/net/ip_vs');
  t.same(await ipvs.ipvsList(), []);
  t.equal(existsSync('/proc/net/ip_vs'), before);
  if (before) return;
  const service = { protocol: 6, family: 'IPv4', address: Uint8Array.of(10, 96, 0, 1), port: 80, mark: 0 } as const;
  t.equal(await ipvs.ipvsDelete(service), false);
});

const LACKS_IPVS = existsSync('/proc/net/ip_vs') ? false : 'this kernel has no ip_vs';

t.test('virtual services: listed and deleted', { skip: LACKS_IPVS }, async (t) => {
  const commands = [
    '-A -t 10.96.0.1:443 -s rr',
    '-a -t 10.96.0.1:443 -r 127.0.0.1:8443 -m',
    '-A -u [fd00:10:96::a]:53 -s rr',
    '-A --sctp-service 10.96.0.2:9 -s rr',
    '-A -f 7 -s rr',
  ];
  for (const command of commands) run(`ipvsadm ${command}`);
  const text = ({ protocol, address, port, mark, connections }: IpvsListedService): string =>
    `${protocol} ${address === null ? 'none' : addressFromBytes(address)} ${port} ${mark} ${connections}`;
  t.same((await ipvs.ipvsList()).map(text).sort(), [
    '0 none 0 7 0',
    '132 10.96.0.2 9 0 0',
    '17 fd00:10:96::a 53 0 0',
    '6 10.96.0.1 443 0 0',
  ]);
  for (const service of await ipvs.ipvsList()) {
    t.equal(await ipvs.ipvsDelete(service), true);
    t.equal(await ipvs.ipvsDelete(service), false);
  }
  t.same(await ipvs.ipvsList(), []);
});
