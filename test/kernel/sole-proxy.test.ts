// Two proxies in one network namespace: the second one says who is there and ends, before it has written anything.
import t from 'tap';
import { eventually, Lab } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a'] as const;
const WEB = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: PODS });

t.test('a second process stops, and does not change the rules of the first', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const first = await Proxy.start(t, lab, { objects: WEB });
  const before = await lab.run('node', ['nft', 'list', 'ruleset']);

  const second = await first.run(null, ['--healthz-bind-address=127.0.0.1:11256']);
  t.equal(second.status, 1);
  t.match(second.stderr, /another proxy runs here, waiting for its end/);
  t.match(second.stderr, /another proxy serves this node: stop it first/);
  t.match(second.stderr, `process ${first.pid ?? ''}, mode nftables, node `);
  t.equal((await lab.run('node', ['nft', 'list', 'ruleset'])).stdout, before.stdout);

  const cleanup = await first.run(null, ['--cleanup']);
  t.equal(cleanup.status, 1);
  t.match(cleanup.stderr, /nothing is removed while a proxy runs here.*process/);
  t.equal((await lab.run('node', ['nft', 'list', 'ruleset'])).stdout, before.stdout);

  await first.stop();
  t.match(await first.run(null, ['--cleanup']), { status: 0 });
  t.equal((await lab.run('node', ['nft', 'list', 'ruleset'])).stdout.trim(), '');
});

t.test('another proxy without a claim is recognised by its metrics address', async (t) => {
  const lab = await Lab.start(t);
  const script =
    "require('http').createServer((q, a) => a.end(q.url === '/proxyMode' ? 'ipvs' : '')).listen(10249, '127.0.0.1')";
  const peer = lab.spawn('node', [process.execPath, '-e', script]);
  t.teardown(() => peer.kill('SIGKILL'));
  await eventually('kube-proxy', async () => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/proxyMode');
    return 'status' in answer || null;
  });
  const proxy = await Proxy.prepare(t, lab, {});
  const { status, stderr } = await proxy.run(null);
  t.equal(status, 1);
  t.match(stderr, /other="a proxy in mode ipvs, which answers at http:..127.0.0.1:10249.proxyMode"/);
  t.equal((await lab.run('node', ['nft', 'list', 'ruleset'])).stdout.trim(), '', 'nothing is written');
});
