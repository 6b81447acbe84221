// pointsman selftest: what packets do is what explain says, and nothing of it stays.
// needs: nft
import t, { type Test } from 'tap';
import type { SelftestRow } from '../../src/cli/print-selftest.js';
import { eventually, type CommandResult } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { startScene, type Scene } from '../support/lab/scene.js';
import { PROGRAM } from '../support/program.js';

const PORTS = [
  { name: 'http', port: 80, targetPort: 8080, nodePort: 30001 },
  { name: 'dns', port: 53, targetPort: 8080, nodePort: 30002, protocol: 'UDP' },
] as const;

function scene(t: Test): Promise<Scene> {
  const objects = [
    ...dualStack('web', {
      type: 'LoadBalancer',
      number: 41,
      loadBalancers: [3],
      ports: PORTS,
      endpoints: ['pod-a', 'remote-a'],
    }),
    ...dualStack('dead', { number: 42, ports: [{ name: 'http', port: 80, targetPort: 9 }], endpoints: ['pod-b'] }),
    ...dualStack('empty', { number: 43, ports: [{ name: 'http', port: 80, targetPort: 8080 }], endpoints: [] }),
  ];
  return startScene(t, objects);
}

function run({ lab, proxy }: Scene, ...words: readonly string[]): Promise<CommandResult> {
  return lab.run('node', ['node', PROGRAM, 'selftest', ...words, '--status-socket', proxy.statusSocket]);
}

async function rowsOf(scene: Scene, ...words: readonly string[]): Promise<readonly SelftestRow[]> {
  const { stdout, stderr } = await run(scene, '-o', 'json', ...words);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as readonly SelftestRow[];
}

/** What a test could leave behind, but for the order of a set's elements, times of listings and what packets count. */
async function traces({ lab, proxy }: Scene): Promise<string> {
  const links = await lab.output('node', ['ip', '-o', 'link']);
  const names = links.split('\n').map((line) => line.split(/[:@]/)[1] ?? '');
  const rules = (await proxy.rules()).split('\n').filter((line) => !line.startsWith('# '));
  return [...names, ...rules.map((line) => line.replace(/\[\d+:\d+\]/, ''))].sort().join('\n');
}

/** Waits until everything is as it was before. */
async function nothingIsLeft(t: Test, scene: Scene, before: string): Promise<void> {
  let now = '';
  const isSame = async (): Promise<true | null> => ((now = await traces(scene)) === before ? true : null);
  await eventually('nothing is left', isSame).catch(() => undefined);
  t.equal(now, before);
}

t.test('selftest passes with its own Service, and leaves nothing', async (t) => {
  const at = await scene(t);
  const before = await traces(at);
  const rows = await rowsOf(at);
  t.same(
    rows.filter(({ result }) => result !== 'passed'),
    [],
  );
  t.same(
    [...new Set(rows.map(({ what, from, protocol }) => `${what} from ${from} ${protocol ?? ''}`))].sort(),
    ['TCP', 'UDP']
      .flatMap((protocol) =>
        [
          'cluster IP from client',
          'cluster IP from node',
          'endpoint from node',
          'load balancer address from client',
          'node port from client',
        ].map((what) => `${what} ${protocol}`),
      )
      .sort(),
  );
  t.equal(rows.length, 20, 'both families');
  t.ok(
    rows.every(({ source }) => source !== null),
    'the server tells which source it sees',
  );
  t.ok(
    rows.every(({ agrees, what }) => agrees === (what === 'endpoint' ? null : true)),
    'as explain says',
  );
  await nothingIsLeft(t, at, before);

  await t.test('selftest fails with foreign rules that drop, and a killed selftest leaves nothing', async (t) => {
    const wall = 'table inet wall { chain f { type filter hook forward priority 10; ip daddr 198.18.0.0/15 drop; }; }';
    await at.lab.output('node', ['nft', '-f', '-'], wall);
    const walled = await traces(at);
    const { status, stdout } = await run(at, '--seconds', '1');
    t.equal(status, 1);
    t.match(stdout, /^failed +cluster IP +client +198\.1[89]\..*\/TCP .* nothing came back/m);
    t.match(stdout, /^passed +cluster IP +client +\[2001:2:.*\/TCP .* answered$/m);
    const words = ['selftest', '--seconds=60', '--status-socket', at.proxy.statusSocket];
    const child = at.lab.spawn('node', ['node', PROGRAM, ...words]);
    await eventually('its Service is served', async () => / 198\.1[89]\./.test(await at.proxy.rules()) || null);
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await ended;
    await nothingIsLeft(t, at, walled);
    t.equal((await at.proxy.status()).healthy, true);
  });
});

t.test('selftest tests Services of the cluster', async (t) => {
  const at = await scene(t);
  const before = await traces(at);
  const rows = await rowsOf(at, 'web', 'default/dead', 'empty', '--seconds=1');
  t.same(
    rows.filter(({ agrees, what }) => agrees === false && !what.includes('dead')),
    [],
    'what happens is what explain says',
  );
  const results = (wanted: string): readonly string[] => [
    ...new Set(
      rows.filter(({ what, protocol }) => what.endsWith(wanted) && protocol === 'TCP').map(({ result }) => result),
    ),
  ];
  t.same(results('default/web'), ['passed'], 'cluster IP, node port, load balancer address, endpoints');
  t.same(results('default/dead'), ['failed'], 'its endpoint refuses');
  t.match(
    rows.find(({ what }) => what === 'cluster IP of default/empty'),
    { result: 'failed', agrees: true, text: /^refused; explain: reject, no-endpoints/ },
  );
  t.ok(
    rows.every(({ protocol, result }) => protocol !== 'UDP' || result !== 'failed'),
    'datagrams: an answer, or it is not known',
  );
  await nothingIsLeft(t, at, before);
  const junit = await run(at, 'empty', '-o', 'junit');
  t.equal(junit.status, 1);
  t.match(junit.stdout, /^<\?xml [^]*<testsuite name="pointsman selftest" tests="4" failures="4" skipped="0">\n/);
  t.match(await run(at, 'nobody'), { status: 2, stderr: /there is no Service nobody/ });
  t.match(await run(at, '--seconds=0'), { status: 2, stderr: /--seconds.*must be 1 to 60/ });
});

t.test('selftest reports missing privileges', async (t) => {
  const at = await scene(t);
  const bound = ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin'];
  const { status, stdout } = await at.lab.run('node', [
    ...bound,
    'node',
    PROGRAM,
    'selftest',
    '--status-socket',
    at.proxy.statusSocket,
  ]);
  t.equal(status, 2);
  t.match(stdout, /^skipped +packets of a client .* it takes CAP_SYS_ADMIN, as in a privileged pod$/m);
  t.match(stdout, /^0 passed, 0 failed, 2 skipped$/m);
  const words = ['selftest', 'web', '-o', 'json', '--status-socket', at.proxy.statusSocket];
  const named = await at.lab.run('node', [...bound, 'node', PROGRAM, ...words]);
  t.equal(named.status, 0);
  const rows = JSON.parse(named.stdout) as readonly SelftestRow[];
  const tried = rows.filter(({ result }) => result === 'passed');
  t.ok(tried.length > 0 && tried.every(({ from }) => from === 'node'), 'a Service that is named: from the node');
  t.match(
    rows.find(({ what }) => what === 'packets of a client outside this node'),
    { result: 'skipped', text: /it takes CAP_SYS_ADMIN/ },
    'and it is said what was not tried',
  );
});
