import t from 'tap';
import { becomeSoleProxy } from '../../src/cli/sole-proxy.js';
import type { Claim, Host } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { RecordingLog } from '../support/recording-log.js';
import { loaded } from '../config/load-from.js';

// Nothing of this machine answers there.
const { config } = loaded(['--metrics-bind-address=127.0.0.1:1']);

const addon = Object.assign(new FakeKernel(loadCompiler()), { peer: { peerName: () => 'x', peerUser: () => null } });

function hostOf(claims: readonly Claim[]): Host {
  const left = [...claims];
  return { ...LINUX_HOST, claimNetwork: () => Promise.resolve(left.shift() ?? { type: 'taken', who: 'the last one' }) };
}

t.test('a proxy waits for a predecessor that is about to end', async (t) => {
  const log = new RecordingLog();
  const release = (): Promise<void> => Promise.resolve();
  const old: Claim = { type: 'taken', who: 'the old one' };
  const host = hostOf([old, old, { type: 'held', release }]);
  t.same(await becomeSoleProxy(config, { host, addon }, log), { release });
  t.match(log.lines, [/waiting for its end/]);
});

t.test('a proxy stops waiting for another proxy after a time limit, and names it', async (t) => {
  const host = hostOf([]);
  const outcome = await becomeSoleProxy(config, { host, addon }, new RecordingLog(), 0);
  t.same(outcome, { other: 'the last one' });
});

t.test('an unknown network claim does not stop the proxy, and is logged', async (t) => {
  const log = new RecordingLog();
  const host = hostOf([{ type: 'unknown', why: 'no such sockets' }]);
  t.match(await becomeSoleProxy(config, { host, addon }, log), { release: Function });
  t.match(log.lines, [/unknown whether another proxy runs here/]);
});
