// pointsman selftest: what packets do is what explain says, and nothing of it stays.
// needs: nft
import t, { type Test } from 'tap';
import type { SelftestRow } from '../../src/cli/print-selftest.js';
import { inFull } from '../support/extent.js';
import { eventually, type CommandResult } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { labMode } from '../support/lab/mode.js';
import { startScene, type Scene } from '../support/lab/scene.js';
import { PROGRAM } from '../support/program.js';

const PORTS = [
  { name: 'http', port: 80, targetPort: 8080, nodePort: 30001 },
  { name: 'dns', port: 53, targetPort: 8080, nodePort: 30002, protocol: 'UDP' },
] as const;

const IS_IPVS = labMode().startsWith('ipvs');
/** The kernel of the tests in mode ipvs computes slowly, and limits the ICMPv6 errors that it sends to the node itself. */
const SECONDS = IS_IPVS ? '--seconds=8' : '--seconds=2';
const FEW_SECONDS = IS_IPVS ? '--seconds=4' : '--seconds=1';
/** ip_vs keeps a virtual service until its last connection has ended: TIME_WAIT takes two minutes, and is looked for with growing pauses. */
const PATIENCE_MS = IS_IPVS ? 280_000 : 20_000;

/** All that the proxy's container has, see deploy/daemonset. */
const AS_CONTAINER = [
  'setpriv',
  ...['--bounding-set', '-all,+net_admin,+net_raw', '--inh-caps', '-all', '--no-new-privs'],
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
  await eventually('nothing is left', isSame, PATIENCE_MS).catch(() => undefined);
  t.equal(now, before);
}

t.test('selftest passes with its own Service, and leaves nothing', async (t) => {
  const at = await scene(t);
  const before = await traces(at);
  const rows = await rowsOf(at, SECONDS);
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

  await t.test('a killed selftest leaves nothing', async (t) => {
    const words = ['selftest', '--seconds=60', '--status-socket', at.proxy.statusSocket];
    const child = at.lab.spawn('node', ['node', PROGRAM, ...words]);
    await eventually('its Service is served', async () => / 198\.1[89]\./.test(await at.proxy.rules()) || null);
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await ended;
    await nothingIsLeft(t, at, before);
    t.equal((await at.proxy.status()).healthy, true);
  });

  // The kernel of the tests in mode ipvs has no tables of both families.
  await t.test('selftest fails with foreign rules that drop', { skip: IS_IPVS }, async (t) => {
    const wall = 'table inet wall { chain f { type filter hook forward priority 10; ip daddr 198.18.0.0/15 drop; }; }';
    await at.lab.output('node', ['nft', '-f', '-'], wall);
    const { status, stdout } = await run(at, '--seconds', '1');
    t.equal(status, 1);
    t.match(stdout, /^failed +cluster IP +client +198\.1[89]\..*\/TCP .* nothing came back/m);
    t.match(stdout, /^passed +cluster IP +client +\[2001:2:.*\/TCP .* answered$/m);
  });
});

t.test('selftest tests Services of the cluster', inFull, async (t) => {
  const at = await scene(t);
  const before = await traces(at);
  const rows = await rowsOf(at, 'web', 'default/dead', 'empty', FEW_SECONDS);
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

/** What no mode makes different, and takes minutes where processes are slow to start. */
const ofNoMode = IS_IPVS ? { skip: 'selftest.test has it: it is the same in each mode' } : {};

t.test(
  "with a container's privileges selftest tries what it can, and reports the rest",
  { ...ofNoMode, ...inFull },
  async (t) => {
    const at = await scene(t);
    const before = await traces(at);
    const runBound = (...words: readonly string[]): Promise<CommandResult> =>
      at.lab.run('node', [
        ...AS_CONTAINER,
        ...['node', PROGRAM, 'selftest', SECONDS, ...words, '--status-socket', at.proxy.statusSocket],
      ]);
    const own = await runBound('-o', 'json');
    t.equal(own.stderr, '');
    t.equal(own.status, 0);
    const ownRows = JSON.parse(own.stdout) as readonly SelftestRow[];
    t.same(
      ownRows
        .filter(({ result }) => result === 'passed')
        .map(({ what, from, protocol, source }) => [what, from, protocol, source === null])
        .sort(),
      ['cluster IP', 'endpoint', 'load balancer address'].flatMap((what) =>
        ['TCP', 'TCP', 'UDP', 'UDP'].map((protocol) => [what, 'node', protocol, false]),
      ),
      'a Service of its own whose endpoint is this node',
    );
    t.same(
      ownRows
        .filter(({ result }) => result !== 'passed')
        .map(({ what, result, text }) => [what, result, /it takes CAP_SYS_ADMIN, as in a privileged pod$/.test(text)]),
      [
        ['packets of a client outside this node', 'skipped', true],
        ['packets to an endpoint outside this node', 'skipped', true],
        ['node ports of the test Service', 'skipped', false],
      ],
    );
    await nothingIsLeft(t, at, before);
    const named = await runBound('web', '-o', 'json');
    t.equal(named.status, 0);
    const rows = JSON.parse(named.stdout) as readonly SelftestRow[];
    const tried = rows.filter(({ result }) => result === 'passed');
    t.ok(tried.length > 0 && tried.every(({ from }) => from === 'node'), 'a Service that is named: from the node');
    t.match(
      rows.find(({ what }) => what === 'packets of a client outside this node'),
      { result: 'skipped', text: /it takes CAP_SYS_ADMIN/ },
      'and it is said what was not tried',
    );
  },
);

t.test('the process serves a test only endpoints on this node', ofNoMode, async (t) => {
  const at = await scene(t);
  const ask = async (endpoint: string): Promise<string> => {
    const url = `http://status/selftest?block=1&endpoint=${encodeURIComponent(endpoint)}`;
    const { stdout } = await at.lab.run('node', ['curl', '-s', '-m', '5', '--unix-socket', at.proxy.statusSocket, url]);
    return stdout;
  };
  t.match(await ask('10.244.1.10,80,80'), /^endpoint: 10\.244\.1\.10 is no address of this node/);
  t.match(await ask('192.168.0.2,0,80'), /^endpoint: "192\.168\.0\.2,0,80": not an address and two ports/);
});
