// pointsman trace: what is reported of packets is what becomes of them, and what explain says; nothing of it stays.
// needs: nft
import t, { type Test } from 'tap';
import type { TracedAndExplained } from '../../src/cli/print-trace.js';
import type { TracedAnswer, TracedConnection } from '../../src/dataplane/trace/connection.js';
import { inFull } from '../support/extent.js';
import { endpoint, eventually, Lab, type CommandResult, type Traffic } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, IPV4, type FamilyView } from '../support/lab/packet-table.js';
import { PREFIXES } from '../support/lab/topology.js';
import { startScene, type Scene } from '../support/lab/scene.js';
import { PROGRAM } from '../support/program.js';

/** As long as it may be: an emulated machine takes half a minute to start a process. */
const PATIENT = ['--seconds', '60'] as const;
const HTTP = [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30001 }] as const;
const DNS = [{ name: 'dns', port: 53, targetPort: 8080, protocol: 'UDP' }] as const;
const IS_LEGACY = labMode().endsWith('legacy');
const IS_IPVS = labMode().startsWith('ipvs');

function scene(t: Test): Promise<Scene> {
  const balanced = { type: 'LoadBalancer', endpoints: ['pod-a', 'remote-a'] } as const;
  const ports = (nodePort: number) => [{ name: 'http', port: 80, targetPort: 8080, nodePort }];
  const objects = [
    ...dualStack('web', { ...balanced, number: 41, loadBalancers: [3], ports: HTTP }),
    ...dualStack('dns', { number: 42, ports: DNS, endpoints: ['pod-a'] }),
    ...dualStack('sticky', { ...balanced, number: 43, ports: ports(30002), affinitySeconds: 600 }),
    ...dualStack('elsewhere', {
      type: 'LoadBalancer',
      number: 44,
      loadBalancers: [4],
      ports: ports(30003),
      externalTrafficPolicy: 'Local',
      endpoints: ['remote-a'],
    }),
    ...dualStack('ranged', {
      ...balanced,
      number: 45,
      loadBalancers: [5],
      ports: ports(30004),
      sourceRanges: [PREFIXES.admitted.IPv4, PREFIXES.admitted.IPv6],
    }),
    ...dualStack('empty', { number: 46, ports: [{ name: 'http', port: 80 }, ...DNS], endpoints: [] }),
    ...dualStack('dead', { number: 47, ports: [{ name: 'http', port: 80, targetPort: 9 }], endpoints: ['pod-b'] }),
  ];
  return startScene(t, objects);
}

interface Tracing {
  readonly pid: number;
  readonly done: Promise<CommandResult>;
  readonly kill: () => Promise<void>;
}

/** Starts it and waits until the kernel traces. */
async function start({ lab, proxy }: Scene, ...words: readonly string[]): Promise<Tracing> {
  const before = await tables(lab);
  const child = lab.spawn('node', ['node', PROGRAM, 'trace', ...words, '--status-socket', proxy.statusSocket]);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const done = new Promise<CommandResult>((resolve) => {
    child.once('close', (status) => {
      resolve({ status, stdout, stderr });
    });
  });
  let hasEnded = false;
  void done.then(() => (hasEnded = true));
  await eventually('packets are traced', async () => hasEnded || (await tables(lab)).length > before.length || null);
  return {
    pid: child.pid ?? 0,
    done,
    kill: async () => {
      child.kill('SIGKILL');
      await done;
    },
  };
}

async function tables(lab: Lab): Promise<readonly string[]> {
  const text = await lab.output('node', ['nft', 'list', 'tables']);
  return text.split('\n').filter((line) => line.includes('pointsman-trace-'));
}

/** But for what packets count. */
async function ruleset(lab: Lab): Promise<string> {
  return (await lab.ruleset()).replaceAll(/packets \d+ bytes \d+/g, 'packets');
}

/** What is told of one connection. */
async function traced(at: Scene, traffic: Traffic, ...words: readonly string[]): Promise<TracedAndExplained> {
  const to = `${traffic.to}/${traffic.protocol ?? 'TCP'}`;
  const { done } = await start(at, to, '-o', 'json', ...PATIENT, ...words);
  await at.lab.request({ timeoutMs: 1000, ...traffic });
  const { stdout, stderr } = await done;
  if (stdout === '') throw new Error(stderr);
  const [first] = JSON.parse(stdout) as readonly TracedAndExplained[];
  if (first === undefined) throw new Error(`nothing was traced: ${stderr}`);
  return first;
}

/** Traffic, and what is to be told of it. */
interface Row {
  readonly what: string;
  readonly from: string;
  readonly to: (view: FamilyView) => string;
  readonly protocol?: 'UDP';
  readonly outcome: TracedConnection['outcome'];
  readonly ours?: boolean;
  readonly answer?: TracedAnswer['type'] | null;
}

const clusterIP =
  (number: number, port = 80) =>
  (view: FamilyView): string =>
    endpoint(view.clusterIP(number), port);
const nodePort =
  (port: number) =>
  (view: FamilyView): string =>
    view.nodePort(port);
const loadBalancer =
  (number: number) =>
  (view: FamilyView): string =>
    endpoint(view.loadBalancerIP(number), 80);

const ROWS: readonly Row[] = [
  { what: 'cluster IP', from: 'client', to: clusterIP(41), outcome: 'forwarded', answer: 'answered' },
  { what: 'cluster IP from a pod', from: 'pod-b', to: clusterIP(41), outcome: 'forwarded', answer: 'answered' },
  { what: 'cluster IP from the node', from: 'node', to: clusterIP(41), outcome: 'forwarded', answer: 'answered' },
  { what: 'UDP', from: 'pod-b', to: clusterIP(42, 53), protocol: 'UDP', outcome: 'forwarded', answer: 'answered' },
  { what: 'node port', from: 'client', to: nodePort(30001), outcome: 'forwarded', answer: 'answered' },
  { what: 'node port from the node', from: 'node', to: nodePort(30001), outcome: 'forwarded', answer: 'answered' },
  { what: 'load balancer', from: 'client', to: loadBalancer(3), outcome: 'forwarded', answer: 'answered' },
  { what: 'policy Local', from: 'client', to: loadBalancer(4), outcome: 'dropped', ours: true, answer: null },
  { what: 'admitted source', from: 'client', to: loadBalancer(5), outcome: 'forwarded', answer: 'answered' },
  { what: 'other source', from: 'blocked', to: loadBalancer(5), outcome: 'dropped', ours: true, answer: null },
  { what: 'no endpoints', from: 'pod-b', to: clusterIP(46), outcome: 'rejected', ours: true },
  { what: 'no endpoints, from the node', from: 'node', to: clusterIP(46), outcome: 'rejected', ours: true },
  { what: 'no endpoints, UDP', from: 'pod-b', to: clusterIP(46, 53), protocol: 'UDP', outcome: 'rejected', ours: true },
  { what: 'endpoint refuses', from: 'client', to: clusterIP(47), outcome: 'forwarded', answer: 'refused' },
];

/** In `npm test` each row is of one family in mode nftables, and in the others of IPv4, one in three of both. */
function extentOf({ family }: FamilyView, index: number): typeof inFull {
  if (labMode() === 'nftables') return (index % 2 === 0) === (family === 'IPv4') ? {} : inFull;
  return family === 'IPv4' || index % 3 === 0 ? {} : inFull;
}

t.test('trace agrees with explain', async (t) => {
  const at = await scene(t);
  const before = await ruleset(at.lab);
  for (const [index, { what, from, to, protocol = 'TCP', outcome, ours, answer }] of ROWS.entries())
    for (const view of FAMILY_VIEWS)
      await t.test(`${what}, ${view.family}`, extentOf(view, index), async (t) => {
        const { connection, agrees, explanation } = await traced(at, { from, to: to(view), protocol });
        t.equal(agrees, true, 'explain says the same');
        // Which rule it was is not told of iptables-legacy; ip_vs itself refuses what the node sends.
        const isHidden = ours === true && (IS_LEGACY || (IS_IPVS && from === 'node'));
        t.equal(connection.outcome, isHidden ? 'lost' : outcome);
        t.equal(connection.loss?.ours ?? null, isHidden ? null : (ours ?? null));
        if (answer !== undefined) t.equal(connection.answer?.type ?? null, answer);
        if (answer === 'answered')
          t.match(
            connection.answer,
            { arrives: true, as: to(view), from: connection.endpoint },
            'back as it was asked',
          );
        if (!t.passing()) t.comment(JSON.stringify({ connection, explanation }, null, 1));
      });
  // ip_vs sends by hook output: neither rules at hook forward nor ip_forward meet its requests.
  await t.test('trace shows foreign rules', { skip: IS_IPVS }, async (t) => {
    const wall = 'table inet wall { chain f { type filter hook forward priority 10; tcp dport 8080 drop; }; }';
    await at.lab.output('node', ['nft', '-f', '-'], wall);
    const { connection, agrees } = await traced(at, { from: 'client', to: clusterIP(41)(IPV4) });
    t.match(connection, {
      outcome: 'dropped',
      loss: { ours: false, hook: 'forward', priority: 10, table: 'inet wall', chain: 'f', rule: /drop/ },
    });
    t.equal(agrees, true, 'which explain warns of');
    await at.lab.output('node', ['nft', 'delete', 'table', 'inet', 'wall']);
  });
  await t.test('trace shows that the node does not forward', { skip: IS_IPVS }, async (t) => {
    await at.lab.sysctl('node', 'net/ipv4/conf/all/forwarding', '0');
    const tracing = await start(at, 'web');
    await at.lab.request({ from: 'client', to: clusterIP(41)(IPV4), timeoutMs: 300 });
    const { status, stdout, stderr } = await tracing.done;
    t.equal(stderr, '');
    t.equal(status, 1);
    t.match(stdout, /^TCP from 203\.0\.113\.2:\d+ to 10\.96\.0\.41:80 was lost$/m);
    t.match(stdout, /^lost +after hook prerouting: by routing/m);
    t.match(stdout, /^explain +agrees: [^]*net\.ipv4\.ip_forward is 0[^]*remedy: sysctl -w net\.ipv4\.ip_forward=1/m);
    await at.lab.sysctl('node', 'net/ipv4/conf/all/forwarding', '1');
  });
  await t.test('trace prints text, selects a sender, and follows several connections', async (t) => {
    const tracing = await start(at, 'svc/web', '--from', '203.0.113.2', '--count', '2');
    await at.lab.request({ from: 'pod-b', to: clusterIP(41)(IPV4) });
    await at.lab.request({ from: 'client', to: clusterIP(41)(IPV4) });
    await at.lab.request({ from: 'client', to: clusterIP(41)(IPV4) });
    const { status, stdout, stderr } = await tracing.done;
    t.equal(stderr, '');
    t.equal(status, 0);
    t.match(
      stdout,
      /^waiting for 2 new connections from 203\.0\.113\.2 to 10\.96\.0\.41:80\/TCP \(default\/web:http\)/,
    );
    const heads =
      stdout.match(/^TCP from (\S+):\d+ to 10\.96\.0\.41:80 was forwarded to \S+:8080, masqueraded$/gm) ?? [];
    t.equal(heads.length, 2);
    t.ok(heads.every((head) => head.includes('from 203.0.113.2:')));
    t.match(stdout, /^interfaces +in by eth0, out by (?:eth0|veth-a)$/m);
    t.match(stdout, /^answer +from 10\.244\.\S+:8080, goes back as from 10\.96\.0\.41:80$/m);
    t.match(stdout, /^explain +agrees: TCP from 203\.0\.113\.2 /m);
  });
  await t.test('two traces run at once, and killed ones leave nothing', async () => {
    // Together, as an emulated machine needs longer for one after the other than a trace may last.
    const [first, second] = await Promise.all([start(at, 'web', ...PATIENT), start(at, 'web', ...PATIENT)]);
    await eventually('both trace', async () => (await tables(at.lab)).length === 2 || null);
    await first.kill();
    await second.kill();
    // The kernel removes them as it closes the sockets.
    await eventually('nothing is left', async () => (await tables(at.lab)).length === 0 || null);
  });
  await t.test('trace without a packet, or with a wrong question, is an error', async (t) => {
    const { lab, proxy } = at;
    const run = (...words: readonly string[]): Promise<CommandResult> =>
      lab.run('node', ['node', PROGRAM, 'trace', ...words, '--status-socket', proxy.statusSocket]);
    t.match(await run('web', '--seconds', '1'), { status: 2, stderr: /no such packet came by in 1 s/ });
    t.match(await run('nobody'), { status: 2, stderr: /there is no Service nobody/ });
    t.match(await run('web', '--count', '0'), { status: 2, stderr: /--count.*must be 1 to 100/ });
    t.match(await run(), { status: 2, stderr: /trace needs an argument/ });
    const bound = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];
    const unable = await lab.run('node', [
      ...bound,
      'node',
      ...[PROGRAM, 'trace', 'web', '--status-socket', proxy.statusSocket],
    ]);
    t.match(unable, { status: 2, stderr: /it takes CAP_NET_ADMIN/ });
  });
  t.equal(await ruleset(at.lab), before, 'byte for byte as it was');
  await t.test('trace shows affinity', async (t) => {
    const traffic = { from: 'client', to: clusterIP(43)(IPV4) };
    const endpoints: (string | null)[] = [];
    for (let count = 0; count < 4; count++) {
      const { connection, agrees } = await traced(at, traffic);
      t.equal(agrees, true);
      endpoints.push(connection.endpoint);
    }
    t.equal(new Set(endpoints).size, 1, 'always the same endpoint');
  });
});
