// Another mode in the same process: the new rules come before the old ones go, nobody who sends or asks for health notices, and a crash loses nothing.
// needs: iptables
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { endpoint, eventually, Lab, type Watch } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'remote-a'] as const;
const CHECK_PORT = 31999;
const CHECK_URL = `http://${endpoint(ADDRESSES.node.IPv4, CHECK_PORT)}/`;
const OBJECTS = [
  ...dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30001 }], endpoints: PODS }),
  ...dualStack('dns', { number: 44, ports: [{ port: 53, protocol: 'UDP' }], endpoints: PODS }),
  ...dualStack('empty', { number: 43, ports: [{ port: 80 }], endpoints: [] }),
];
const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-b', to: endpoint(view.clusterIP(44), 53), protocol: 'UDP', expect: view.kept(PODS, 53) },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'node', to: endpoint(view.clusterIP(41), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);
const TARGETS = ROWS.filter(({ expect }) => expect !== 'refused').map(({ from, to, protocol = 'TCP' as const }) => ({
  from,
  to,
  protocol,
}));
const FLAVOR = ['--iptables-flavor', 'nft'];

/** Asks each address again and again, by a connection of its own and by one that stays open, and prints what went wrong at its end. */
const POLLER = `
const { Agent, get } = require('node:http');
const failures = [], counts = {};
let running = true;
process.stdin.on('end', () => (running = false)).resume();
const ask = (url, agent) => new Promise((resolve) => {
  const request = get(url, { agent, timeout: 5000 }, (answer) => {
    if (answer.statusCode !== 200) failures.push(url + ' ' + answer.statusCode);
    answer.resume().on('end', resolve).on('error', () => {});
  });
  request.on('timeout', () => request.destroy(new Error('timeout')));
  request.on('error', (error) => { failures.push(url + ' ' + error.message); resolve(); });
});
(async () => {
  await Promise.all(process.argv.slice(1).flatMap((url) => [new Agent({ keepAlive: true, maxSockets: 1 }), false].map(async (agent) => {
    do {
      await ask(url, agent);
      counts[url] = (counts[url] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
    } while (running);
    if (agent) agent.destroy();
  })));
  console.log(JSON.stringify({ failures, counts }));
})();`;

/** Polls health in the node's namespace until the answer is called; then what went wrong. */
function pollHealth(lab: Lab): () => Promise<{ readonly failures: readonly string[] }> {
  const urls = ['http://127.0.0.1:10256/healthz', CHECK_URL];
  const child = lab.spawn('node', [process.execPath, '-e', POLLER, ...urls]);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  return async () => {
    child.stdin.end();
    await once(child, 'close');
    return JSON.parse(text) as { failures: string[] };
  };
}

async function watchAll(lab: Lab): Promise<readonly Watch[]> {
  return await Promise.all(TARGETS.map((target) => lab.watch({ ...target, timeoutMs: 3000 }, 1, 2)));
}

async function checkUnnoticed(t: Test, watches: readonly Watch[]): Promise<void> {
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  const lost = outcomes.filter((outcome) => 'error' in outcome);
  t.ok(outcomes.length > 0);
  const answers = outcomes.reduce((sum, { count }) => sum + count, 0);
  t.same(lost, [], `none of ${answers} requests is lost`);
}

/** What the node holds of any mode, by whom it could be. */
async function held(lab: Lab): Promise<Readonly<Partial<Record<LabMode, readonly string[]>>>> {
  const tables = await lab.output('node', ['nft', 'list', 'tables']);
  const saved = await Promise.all(
    ['iptables-nft-save', 'ip6tables-nft-save'].map((each) => lab.output('node', [each])),
  );
  const chains = saved.join('').match(/^:KUBE-\S+/gm) ?? [];
  return { nftables: tables.match(/^table \S+ kube-proxy$/gm) ?? [], 'iptables-nft': chains, 'iptables-legacy': [] };
}

async function alone(t: Test, lab: Lab, proxy: Proxy, former: LabMode): Promise<void> {
  await eventually(`nothing of ${former}`, async () => ((await held(lab))[former]?.length === 0 ? true : null), 30_000);
  t.not((await held(lab))[proxy.mode]?.length ?? 0, 0);
  await proxy.consistent();
  await checkRows(t, lab, ROWS, `${proxy.mode} after ${former}`);
}

t.test('the mode changes there and back in one process, under traffic', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  const near = dualStack('near', {
    number: 77,
    loadBalancers: [3],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: CHECK_PORT,
    ports: [{ port: 80 }],
    endpoints: ['pod-a'],
  });
  const proxy = await Proxy.start(t, lab, { objects: [...OBJECTS, ...near], flags: FLAVOR, mode: 'nftables' });
  const { pid } = proxy;
  await checkRows(t, lab, ROWS);
  await eventually('health check node port', async () => {
    const answer = await lab.http('node', CHECK_URL);
    return 'status' in answer && answer.status === 200 ? true : null;
  });
  const tcp = TARGETS.filter(({ protocol }) => protocol === 'TCP');
  const connections = await Promise.all(tcp.map((target) => lab.open(target)));
  const names = await Promise.all(connections.map((connection) => connection.exchange()));
  const watches = await watchAll(lab);
  const health = pollHealth(lab);
  for (const mode of ['iptables-nft', 'nftables'] as const) {
    const former = proxy.mode;
    await proxy.useMode(mode);
    await alone(t, lab, proxy, former);
    const [kind] = mode.split('-');
    t.match(await proxy.status(), { mode: kind, refusedConfiguration: null, healthy: true });
    const shown = async (page: string): Promise<string> => {
      const answer = await lab.http('node', `http://127.0.0.1:10249/${page}`);
      return 'body' in answer ? answer.body : answer.error;
    };
    t.equal(await shown('proxyMode'), kind);
    const metrics = await shown('metrics');
    t.equal(/^kubeproxy_sync_proxy_rules_iptables_total\{/m.test(metrics), kind === 'iptables');
    t.match(metrics, /^pointsman_config_changes_total\{result="applied"\} \d/m);
  }
  await checkUnnoticed(t, watches);
  const { failures } = await health();
  t.same(failures, [], 'health and the health check node port answer all the time');
  for (const [index, connection] of connections.entries()) {
    const [first, last] = [names[index], await connection.exchange()];
    t.ok(first !== undefined && 'name' in first && 'name' in last && last.name === first.name, 'a connection goes on');
  }
  t.equal(proxy.pid, pid, 'the same process all the time');
});

t.test('a mode that the kernel refuses is rejected, and the active one continues', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  const env = faulty({ refuse: { nftTransact: 'EPERM' } });
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: 'iptables-nft', env });
  const before = await held(lab);
  await proxy.useMode('nftables');
  await eventually('refused', async () =>
    /not enough for mode nftables: .*EPERM/.test((await proxy.status()).refusedConfiguration ?? '') ? true : null,
  );
  t.equal(proxy.log.match(/changed configuration refused/g)?.length, 1, 'said once');
  t.match(await proxy.status(), { mode: 'iptables', healthy: true });
  t.same(await held(lab), before);
  await checkRows(t, lab, ROWS, 'refused');
  await proxy.useMode('iptables-nft');
  await eventually('taken back', async () => ((await proxy.status()).refusedConfiguration === null ? true : null));
});

t.test('after a kill during a mode change, the next process completes it', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  const condition = join(t.testdir(), 'now');
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, flags: FLAVOR, mode: 'nftables' });
  const watches = await watchAll(lab);
  const moments = [
    // The first of two tables has gone.
    ['iptables-nft', 1, 'after'],
    // After the trial of both families one of them has its rules.
    ['nftables', 3, 'after'],
    // All rules are there, and nothing has gone.
    ['iptables-nft', 1, 'before'],
  ] as const;
  for (const [mode, call, when] of moments) {
    const former = proxy.mode;
    await proxy.stop('SIGKILL');
    proxy.launch(faulty({ kill: { call, when }, while: condition }));
    await proxy.ready();
    await writeFile(condition, '');
    await proxy.useMode(mode);
    await eventually('killed', () => Promise.resolve(proxy.ended ? true : null), 60_000);
    await rm(condition);
    const left = await held(lab);
    t.not(left[former]?.length ?? 0, 0, `${former} was still there`);
    proxy.launch({});
    await proxy.ready();
    await alone(t, lab, proxy, former);
  }
  await checkUnnoticed(t, watches);
});
