// needs: iptables
import '../support/namespace.js';

import { spawnSync } from 'node:child_process';
import t from 'tap';
import { TCP_STATES } from '../../src/base/conntrack-timeouts.js';
import { loadAddon } from '../../src/native/load.js';
import type { TimeoutPolicy } from '../../src/native/contract.js';

const { timeouts, iptables } = loadAddon();

const TCP: TimeoutPolicy = {
  name: 'Kt01',
  family: 'IPv4',
  protocol: 6,
  seconds: TCP_STATES.map((_, place) => place + 1),
};
const UDP: TimeoutPolicy = { name: 'KU02', family: 'IPv6', protocol: 17, seconds: [2, 180] };

function sorted(policies: readonly TimeoutPolicy[]): readonly TimeoutPolicy[] {
  return [...policies].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** What a program says; null when it fails. */
function run(command: string, input = ''): string | null {
  const [program = '', ...args] = command.split(' ');
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8', input });
  return status === 0 ? stdout : null;
}

t.test('timeout policies are made, listed, changed and deleted', async (t) => {
  t.same(await timeouts.timeoutList(), []);
  await timeouts.timeoutSet(TCP);
  await timeouts.timeoutSet(UDP);
  t.same(sorted(await timeouts.timeoutList()), [UDP, TCP]);
  const longer = { ...UDP, seconds: [5, 600] };
  await timeouts.timeoutSet(longer);
  t.same(sorted(await timeouts.timeoutList()), [longer, TCP]);
  await t.rejects(timeouts.timeoutSet({ ...TCP, family: 'IPv6' }), { code: 'ERR_NETLINK', errno: 'EINVAL' });
  t.equal(await timeouts.timeoutDelete('KU02'), true);
  t.equal(await timeouts.timeoutDelete('KU02'), false);
  t.same(await timeouts.timeoutList(), [TCP]);
});

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`${flavor}: a timeout policy that a rule names stays, and is listed by its whole name`, async (t) => {
    await timeouts.timeoutSet(TCP);
    const rule = '-p tcp -m tcp --dport 80 -j CT --timeout Kt01';
    await iptables.iptablesRestore({
      family: 'IPv4',
      flavor,
      operations: [{ type: 'chain', table: 'raw', chain: 'T', rules: [{ type: 'text', text: rule }], owner: null }],
    });
    await t.rejects(timeouts.timeoutDelete('Kt01'), { code: 'ERR_NETLINK', errno: 'EBUSY' });
    const listed = await iptables.iptablesList('IPv4', flavor, ['raw'], ['T']);
    t.match(
      listed.find(({ name }) => name === 'T'),
      { table: 'raw', rules: [rule] },
    );
    // The legacy programs read the whole table and write it back.
    t.not(run(`iptables-${flavor} -t raw -A T -p tcp -j RETURN`), null);
    t.match(run(`iptables-${flavor}-save -t raw`), rule);
    await iptables.iptablesRestore({
      family: 'IPv4',
      flavor,
      operations: [{ type: 'delete-chain', table: 'raw', chain: 'T' }],
    });
    t.equal(await timeouts.timeoutDelete('Kt01'), true);
  });
}

t.test('timeout policies: wrong arguments are named', (t) => {
  t.throws(() => timeouts.timeoutSet({ ...TCP, name: 'x'.repeat(32) }), { message: /^policy\.name: / });
  t.throws(() => timeouts.timeoutSet({ ...TCP, seconds: [-1] }), { message: /^policy\.seconds\[0\]: / });
  t.throws(() => timeouts.timeoutSet({ ...TCP, seconds: new Array<number>(12).fill(1) }), {
    message: /^policy\.seconds: expected at most 11 states/,
  });
  t.throws(() => timeouts.timeoutDelete(''), { name: 'TypeError', message: /^name: / });
  t.end();
});
