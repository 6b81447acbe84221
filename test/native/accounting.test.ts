// needs: iptables, nft, ip
import '../support/namespace.js';

import { spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';
import { addressBytes, parseAddress } from '../../src/base/ip.js';
import { sendDatagram } from '../support/datagram.js';

const { accounting, iptables } = loadAddon();

function packAddress(text: string): Uint8Array {
  const address = parseAddress(text);
  if (address === null) throw new RangeError(text);
  return addressBytes(address);
}

/** Runs a program that must succeed. */
function run(command: string): void {
  const [program = '', ...args] = command.split(' ');
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr}`);
}

t.before(() => {
  run('ip link set lo up');
});

for (const flavor of ['nft', 'legacy']) {
  t.test(`${flavor}: an accounting object counts packets of its rule, and is made once`, async (t) => {
    const name = `count-${flavor}`;
    t.equal(await accounting.accountPackets(name), null);
    t.equal(await accounting.accountCreate(name), true);
    run(`iptables-${flavor} -A OUTPUT -p udp --dport 9 -m nfacct --nfacct-name ${name}`);
    t.equal(await accounting.accountPackets(name), 0);
    for (let count = 0; count < 3; count++) await sendDatagram('127.0.0.1', 9);
    t.equal(await accounting.accountPackets(name), 3);
    t.equal(await accounting.accountCreate(name), false);
    t.equal(await accounting.accountPackets(name), 3, 'its count stays');
  });

  t.test(`${flavor}: lists of xt_recent are read with address and time`, async (t) => {
    const [first, second] = [`FIRST-${flavor}`, `SECOND-${flavor}`];
    for (const [family, list] of [
      ['iptables', second],
      ['ip6tables', first],
    ] as const)
      run(`${family}-${flavor} -A OUTPUT -p udp --dport 7 -m recent --set --name ${list} --rsource`);
    const lists = ['MISSING', first, second];
    const [v4, v6] = [packAddress('127.0.0.1'), packAddress('::1')];
    t.equal(await iptables.iptablesRemembering(lists, v4, 60), null);
    await sendDatagram('127.0.0.1', 7);
    t.equal(await iptables.iptablesRemembering(lists, v4, 60), 2);
    t.equal(await iptables.iptablesRemembering(lists, v6, 60), null);
    await sendDatagram('::1', 7);
    t.equal(await iptables.iptablesRemembering(lists, v6, 60), 1);
    t.equal(await iptables.iptablesRemembering([second], v6, 60), null);
    await setTimeout(3500);
    t.equal(await iptables.iptablesRemembering(lists, v4, 2), null, 'too long ago');
    t.equal(await iptables.iptablesRemembering(lists, v4, 600), 2);
  });
}

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`${flavor}: packet counters of rules are read`, async (t) => {
    for (const rule of [
      '-N T-COUNT',
      '-A OUTPUT -j T-COUNT',
      '-A T-COUNT -p udp --dport 11',
      '-A T-COUNT -p udp -j RETURN',
    ])
      run(`iptables-${flavor} ${rule}`);
    run(`iptables-${flavor} -A T-COUNT -p udp --dport 12`);
    const counts = (prefix: string) => iptables.iptablesCounts('IPv4', flavor, 'filter', prefix);
    t.same(await counts('T-'), []);
    for (let count = 0; count < 3; count++) await sendDatagram('127.0.0.1', 11);
    await sendDatagram('127.0.0.1', 12);
    const [listed] = (await iptables.iptablesList('IPv4', flavor, ['filter'], [])).filter(
      ({ name }) => name === 'T-COUNT',
    );
    t.same(await counts('T-'), [
      {
        chain: 'T-COUNT',
        digest: listed?.digest,
        rules: ['-p udp -m udp --dport 11', '-p udp -j RETURN'],
        packets: Float64Array.of(3, 4),
      },
    ]);
    t.same(await counts('OTHER-'), []);
    t.same(await iptables.iptablesCounts('IPv4', flavor, 'mangle', ''), []);
  });
}

t.test('accounting: wrong arguments are named', (t) => {
  t.throws(() => accounting.accountCreate('x'.repeat(32)), {
    name: 'TypeError',
    message: /^name: expected a string of 1 to 31 bytes/,
  });
  t.throws(() => accounting.accountPackets(''), { name: 'TypeError', message: /^name: / });
  t.throws(() => iptables.iptablesRemembering(['../a'], packAddress('10.0.0.1'), 1), {
    message: /lists\[0\]: .* without slashes/,
  });
  t.throws(() => iptables.iptablesRemembering([], new Uint8Array(5), 1), {
    message: /source: expected an address of 4 or 16 bytes/,
  });
  t.throws(() => iptables.iptablesRemembering([], new Uint8Array(4), 0), { message: /seconds: / });
  t.end();
});
