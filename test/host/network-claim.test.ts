import { connect } from 'node:net';
import { once } from 'node:events';
import t from 'tap';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Claim } from '../../src/host/host.js';
import { claimNetworkNamespace } from '../../src/host/linux/network-claim.js';
import { claimNetwork } from '../../src/host/network-claim.js';

const NAME = `pointsman-test-${process.pid}`.padEnd(107, '.');
const ROOT = (): number => 0;

function claim(identity: string, userOf: (descriptor: number) => number | null = ROOT): Promise<Claim | null> {
  return claimNetworkNamespace({ identity, peer: () => ({ peerName: () => NAME, peerUser: userOf }) });
}

async function held(claim: Promise<Claim | null>): Promise<() => Promise<void>> {
  const found = await claim;
  if (found?.type !== 'held') throw new Error(JSON.stringify(found));
  return found.release;
}

t.test('a network namespace is claimed by one process, which names itself', async (t) => {
  const release = await held(claim('the first'));
  t.same(await claim('the second'), { type: 'taken', who: 'the first' });
  await release();
  const again = await held(claim('the second'));
  await again();
});

t.test('a claim by another user is unknown, and does not stop the proxy', async (t) => {
  const release = await held(claim('a stranger'));
  const user = (process.getuid?.() ?? 0) + 1000;
  t.match(await claim('ours', () => user), {
    type: 'unknown',
    why: `a process of user ${user}`,
  });
  t.match(await claim('ours', () => null), { type: 'taken' }, 'a kernel that does not say');
  await release();
});

t.test("the answer of the network's owner is reduced to one short line", async (t) => {
  const release = await held(claim(`\u001b[31mred\n${'x'.repeat(10_000)}`));
  const found = await claim('ours');
  t.match(found, { type: 'taken', who: /^\\u001b\[31mred\\u000ax+$/ });
  t.ok(found !== null && 'who' in found && found.who.length < 600);
  await release();
});

t.test('a connected client does not delay the release of the claim', async (t) => {
  const release = await held(claim('ours'));
  const client = connect({ path: `\0${NAME}`, allowHalfOpen: true });
  client.on('error', () => undefined);
  await once(client, 'connect');
  await release();
  client.destroy();
  t.pass();
});

t.test('a claim that can be neither made nor asked is unknown', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'claim-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const path = join(folder, 'pipe');
  symlinkSync(join(folder, 'nowhere'), path);
  const found = await claimNetwork({ path, identity: 'ours', strangerAt: () => null });
  t.match(found, { type: 'unknown', why: /EADDRINUSE/ });
});
