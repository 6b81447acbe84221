import { connect } from 'node:net';
import { once } from 'node:events';
import t from 'tap';
import { claimNetwork } from '../../src/host/linux/network-claim.js';
import type { Claim } from '../../src/host/host.js';

const NAME = `pointsman-test-${process.pid}`.padEnd(107, '.');
const ROOT = (): number => 0;

async function held(claim: Promise<Claim>): Promise<() => Promise<void>> {
  const found = await claim;
  if (found.type !== 'held') throw new Error(JSON.stringify(found));
  return found.release;
}

t.test('one claim is held at a time, and says whose it is', async (t) => {
  const release = await held(claimNetwork({ name: NAME, identity: 'the first', userOf: ROOT }));
  t.same(await claimNetwork({ name: NAME, identity: 'the second', userOf: ROOT }), { type: 'taken', who: 'the first' });
  await release();
  const again = await held(claimNetwork({ name: NAME, identity: 'the second', userOf: ROOT }));
  await again();
});

t.test('a name that another user has keeps no proxy from its rules', async (t) => {
  const release = await held(claimNetwork({ name: NAME, identity: 'a stranger', userOf: ROOT }));
  const user = (process.getuid?.() ?? 0) + 1000;
  t.match(await claimNetwork({ name: NAME, identity: 'ours', userOf: () => user }), {
    type: 'unknown',
    why: `a process of user ${user}`,
  });
  t.match(
    await claimNetwork({ name: NAME, identity: 'ours', userOf: () => null }),
    { type: 'taken' },
    'a kernel that does not say',
  );
  await release();
});

t.test('what a holder says is one short line', async (t) => {
  const release = await held(
    claimNetwork({ name: NAME, identity: `\u001b[31mred\n${'x'.repeat(10_000)}`, userOf: ROOT }),
  );
  const claim = await claimNetwork({ name: NAME, identity: 'ours', userOf: ROOT });
  t.match(claim, { type: 'taken', who: /^\\u001b\[31mred\\u000ax+$/ });
  t.ok('who' in claim && claim.who.length < 600);
  await release();
});

t.test('a client that stays does not keep the claim from its end', async (t) => {
  const release = await held(claimNetwork({ name: NAME, identity: 'ours', userOf: ROOT }));
  const client = connect({ path: `\0${NAME}`, allowHalfOpen: true });
  client.on('error', () => undefined);
  await once(client, 'connect');
  await release();
  client.destroy();
  t.pass();
});
