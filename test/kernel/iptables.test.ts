// What only iptables mode has to show: two flavours, migration, repair, other software's filters, cleanup.
// needs: iptables
import { existsSync, readdirSync } from 'node:fs';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { projectFile } from '../support/lab/agent.js';
import { endpoint, eventually, Lab, type Watch } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import type { Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type FamilyView, type Row } from '../support/lab/packet-table.js';
import { iptablesRules, type PeerService } from '../support/lab/peer-iptables.js';
import { PEER_OBJECTS, PEER_PODS } from '../support/lab/peer-table.js';
import { failed } from '../support/lab/failures.js';
import { Proxy } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'remote-a'] as const;
const CHECK_PORT = 32000;
const OBJECTS = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    externals: [11],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: CHECK_PORT,
    ports: [{ port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', { number: 42, affinitySeconds: 600, ports: [{ port: 80 }], endpoints: PODS }),
  ...dualStack('empty', { number: 44, loadBalancers: [5], ports: [{ port: 80 }], endpoints: [] }),
];
const LOCAL = ['pod-a', 'pod-b'] as const;
const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.kept(LOCAL, 80) },
  { from: 'client', to: view.nodePort(30001), expect: view.kept(LOCAL, 80) },
  { from: 'pod-c', to: endpoint(view.clusterIP(44), 80), expect: 'refused' },
  { shows: 'IT-19 is no gap here', from: 'node', to: endpoint(view.loadBalancerIP(5), 80), expect: 'refused' },
]);

function watchAll(lab: Lab): Promise<readonly Watch[]> {
  const traffic = FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80) },
    { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
    { from: 'client', to: view.nodePort(30001) },
    { from: 'node', to: endpoint(view.clusterIP(42), 80) },
  ]);
  return Promise.all(traffic.map((each) => lab.watch({ ...each, timeoutMs: 3000 }, 1, 2)));
}

/** A listing without what changes by itself. */
function lasting(saved: string): string {
  return saved.replace(/^#.*\n/gm, '').replace(/ \[\d+:\d+\]$/gm, '');
}

const FLAVORS: readonly (readonly [mode: LabMode, programs: readonly string[]])[] = [
  ['iptables-nft', ['iptables-nft', 'ip6tables-nft']],
  ['iptables-legacy', ['iptables-legacy', 'ip6tables-legacy']],
];
const MODES = usually(FLAVORS.slice(0, 1), FLAVORS);

for (const [mode, programs] of MODES) {
  t.test(`${mode} on a node`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, {
      mode: 'nftables',
      objects: OBJECTS,
      config: { nftables: { syncPeriod: '1s' } },
      flags: ['-v', '4'],
    });
    const all = async (...words: readonly string[]): Promise<void> => {
      for (const program of programs) await lab.output('node', [program, '-w', '10', ...words]);
    };

    await t.test('migration from nftables mode, and a restart', async (t) => {
      await checkRows(t, lab, ROWS, 'nftables mode');
      const watches = await watchAll(lab);
      await proxy.stop('SIGTERM');
      await proxy.useMode(mode);
      proxy.launch();
      await proxy.ready();
      await proxy.consistent();
      await checkRows(t, lab, ROWS, mode);
      await eventually('the end of the other mode’s table', async () =>
        (await lab.output('node', ['nft', 'list', 'tables'])).includes('kube-proxy') ? null : true,
      );
      const saved = lasting(await proxy.rules());
      // What the old process still says until it has ended is none of the new one's.
      await proxy.stop('SIGKILL');
      const logged = proxy.log.length;
      proxy.launch();
      await proxy.ready();
      for (const family of ['IPv4', 'IPv6']) {
        const synced = proxy.log.slice(logged).match(new RegExp(`"synced" family="${family}".*`, 'g')) ?? [];
        t.match(synced[0], /full=true transactions=0 .* ruleOperations=0 bytes=0/, `${family} adopted`);
      }
      t.equal(lasting(await proxy.rules()), saved, 'the same rules');
      t.same(await failed(watches), [], 'no request is lost');
    });

    await t.test('rules that were flushed or changed externally are restored', async (t) => {
      // Each table at once: between -F and -X the process may repair it, and chains in use cannot be deleted.
      const nothing = '*filter\nCOMMIT\n*nat\nCOMMIT\n*mangle\nCOMMIT\n';
      for (const program of programs) await lab.output('node', [`${program}-restore`, '-w', '10'], nothing);
      await eventually('repair after a flush', () => isConsistent(proxy), 20_000);
      await checkRows(t, lab, ROWS, 'after the flush');
      t.match(proxy.log, /repaired what the kernel no longer held.*chain mangle KUBE-PROXY-CANARY was missing/);
      await all('-t', 'nat', '-A', 'KUBE-MARK-MASQ', '-j', 'ACCEPT');
      await all('-t', 'nat', '-D', 'PREROUTING', '1');
      await eventually('repair of damage', () => isConsistent(proxy), 20_000);
      t.match(proxy.log, /chain nat KUBE-MARK-MASQ had other rules/);
      await checkRows(t, lab, ROWS, 'after the damage');
    });

    await t.test('IT-27: health checks pass a host firewall that accepts nothing', async (t) => {
      const [program = ''] = programs;
      await lab.output('node', [program, '-w', '10', '-P', 'INPUT', 'DROP']);
      const ask = (port: number): ReturnType<Lab['http']> =>
        lab.http('client', `http://${endpoint(ADDRESSES.node.IPv4, port)}/`, 500);
      const answer = await eventually('a health check', async () => {
        const found = await ask(CHECK_PORT);
        return 'status' in found ? found : null;
      });
      t.equal(answer.status, 200);
      t.notOk('status' in (await ask(10256)), 'what is no health check of a Service does not');
      await lab.output('node', [program, '-w', '10', '-P', 'INPUT', 'ACCEPT']);
    });

    await t.test('the mode changes to nftables and back', inFull, async (t) => {
      const watches = await watchAll(lab);
      for (const next of ['nftables', mode] as const) {
        await proxy.stop('SIGTERM');
        await proxy.useMode(next);
        proxy.launch();
        await proxy.ready();
        const left = next === 'nftables' ? programs.map((program) => [`${program}-save`]) : [['nft', 'list', 'tables']];
        await eventually(
          `nothing of the mode before ${next}`,
          async () => {
            const texts = await Promise.all(left.map((command) => lab.output('node', command)));
            return /KUBE-|kube-proxy/.test(texts.join('')) ? null : true;
          },
          20_000,
        );
        await checkRows(t, lab, ROWS, next);
      }
      t.same(await failed(watches), [], 'no request is lost');
    });

    await t.test('--cleanup removes everything of iptables mode', async (t) => {
      await all('-t', 'nat', '-N', 'MINE');
      await all('-t', 'nat', '-A', 'PREROUTING', '-j', 'MINE');
      await proxy.stop('SIGTERM');
      const { status, stderr } = await proxy.run(null, ['--cleanup']);
      t.equal(status, 0, stderr);
      const left = (await proxy.rules()).match(/KUBE-\S+/g) ?? [];
      t.same([...new Set(left)], [], 'nothing of ours is left');
      t.match(await proxy.rules(), /-A PREROUTING -j MINE/);
      await checkRows(t, lab, [{ from: 'client', to: IPV4.nodePort(30001), expect: 'refused' }], 'after a cleanup');
    });
  });
}

const PEER_SERVICES: readonly PeerService[] = [
  { name: 'default/web:p80', protocol: 'tcp', number: 41, port: 80, nodePort: 30001, loadBalancer: 3, pods: PEER_PODS },
  { name: 'default/sticky:p80', protocol: 'tcp', number: 42, port: 80, affinitySeconds: 10800, pods: PEER_PODS },
  { name: 'default/empty:p80', protocol: 'tcp', number: 43, port: 80, pods: [] },
];
const PEER_ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PEER_PODS, 80) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PEER_PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PEER_PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);

/** Chains that kube-proxy removes if they are not its own (behaviour IT-43). */
const PEER_PREFIX = /^:(KUBE-(?:SVC|SVL|FW|EXT|SEP)-\S+)/gm;

/** What kube-proxy's first sync feeds: its own rules, and the removal of chains that it does not know. */
function peerStart(view: FamilyView, saved: string): string {
  const rules = iptablesRules(view, PEER_SERVICES);
  const chains = (text: string): string[] => [...text.matchAll(PEER_PREFIX)].map((match) => match[1] ?? '');
  const own = chains(rules);
  const foreign = [...new Set(chains(saved))].filter((name) => !own.includes(name));
  const removal = [...foreign.map((name) => `:${name} - [0:0]`), ...foreign.map((name) => `-X ${name}`)];
  return `${rules}*nat\n${removal.join('\n')}\nCOMMIT\n`;
}

for (const [mode, programs] of MODES) {
  t.test(`${mode}: migration from kube-proxy and back, under traffic`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PEER_PODS, [[80, 'TCP']]);
    const startPeer = async (): Promise<void> => {
      for (const [index, view] of FAMILY_VIEWS.entries()) {
        const program = programs[index] ?? '';
        const saved = await lab.output('node', [`${program}-save`]);
        await lab.output('node', [`${program}-restore`, '--noflush', '-w', '30'], peerStart(view, saved));
      }
    };
    const sticky = async (): Promise<readonly string[]> =>
      await Promise.all(
        FAMILY_VIEWS.map(async (view) => {
          const answer = await lab.request({ from: 'pod-b', to: endpoint(view.clusterIP(42), 80), timeoutMs: 3000 });
          return 'name' in answer ? answer.name : answer.error;
        }),
      );
    await startPeer();
    await checkRows(t, lab, PEER_ROWS, 'kube-proxy alone');
    const remembered = await sticky();
    const traffic = FAMILY_VIEWS.flatMap((view) => [
      { from: 'pod-b', to: endpoint(view.clusterIP(41), 80) },
      { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
      { from: 'client', to: view.nodePort(30001) },
    ]);
    const watches = await Promise.all(traffic.map((each) => lab.watch({ ...each, timeoutMs: 3000 }, 1, 2)));

    // More than fit one dispatch chain, so that there is all that kube-proxy could stumble over.
    const more = Array.from({ length: 70 }, (_, index) =>
      dualStack(`more-${index}`, { number: 100 + index, ports: [{ port: 80 }], endpoints: ['pod-a'] }),
    );
    const proxy = await Proxy.start(t, lab, {
      mode,
      objects: [...PEER_OBJECTS, ...more.flat()],
      flags: ['--iptables-flavor', 'auto'],
    });
    await proxy.consistent();
    await checkRows(t, lab, PEER_ROWS, 'after the takeover');
    t.notMatch(await proxy.rules(), /:KUBE-SEP-/, 'its chains are gone');
    t.same(await sticky(), remembered, 'clients keep their endpoint');

    await proxy.stop('SIGTERM');
    await startPeer();
    await checkRows(t, lab, PEER_ROWS, 'kube-proxy started on our rules');
    t.notMatch(await proxy.rules(), /:KUBE-SVC-IP-/, 'and could remove what it does not know');
    t.same(await sticky(), remembered, 'clients still keep it');
    t.same(await failed(watches), [], 'no request is lost');
  });
}

for (const [mode, programs] of MODES) {
  t.test(`${mode}: a Service that got endpoints during a restart is refused until it is served`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [[80, 'TCP']]);
    const halting = t.testdir();
    for (const program of programs.map((each) => `${each}-restore`)) {
      const command = [process.execPath, projectFile('test/support/lab/halting-restore.cjs'), halting, program];
      await writeFile(join(halting, program), `#!/bin/sh\nexec ${command.join(' ')} "$@"\n`, { mode: 0o755 });
    }
    const objects = (endpoints: readonly (typeof PODS)[number][]): readonly Manifest[] =>
      dualStack('late', { number: 44, ports: [{ port: 80 }], endpoints });
    const proxy = await Proxy.start(t, lab, { mode, objects: objects([]) });
    const to = FAMILY_VIEWS.map((view) => ({ from: 'pod-c', to: endpoint(view.clusterIP(44), 80) }));
    const answers = async (expected: object, when: string): Promise<void> => {
      for (const traffic of to) t.match(await lab.request(traffic), expected, `${traffic.to} ${when}`);
    };
    await answers({ error: 'refused' }, 'without endpoints');
    await proxy.stop('SIGTERM');
    await proxy.write(objects(['remote-a']));
    const hold = join(halting, 'hold');
    await writeFile(hold, '');
    proxy.launch({ PATH: `${halting}:${process.env['PATH'] ?? ''}` });
    await eventually('what is about to write the translations', () =>
      Promise.resolve(programs.every((each) => existsSync(join(halting, `${each}-restore.waits`))) || null),
    );
    await answers({ error: 'refused' }, 'while tables are written');
    await rm(hold);
    await proxy.ready();
    await answers({ name: 'remote-a' }, 'afterwards');
    await proxy.consistent();
  });
}

/** The folder of the installed programs' extensions; null where they are not installed. */
function extensions(): string | null {
  const roots = ['/usr/lib', '/usr/lib64', ...readdirSync('/usr/lib').map((name) => join('/usr/lib', name))];
  return roots.map((root) => join(root, 'xtables')).find((folder) => existsSync(join(folder, RECENT))) ?? null;
}

const RECENT = 'libxt_recent.so';
const INSTALLED = extensions();

for (const [mode] of MODES) {
  t.test(
    `${mode}: Services with refused affinity rules do not block others, and are retried`,
    { skip: INSTALLED === null ? 'needs installed programs, whose extensions it takes away' : false, ...inFull },
    async (t) => {
      const lab = await Lab.start(t);
      await lab.serveAll(PODS, [[80, 'TCP']]);
      const folder = t.testdir();
      const installed = INSTALLED ?? '';
      const install = (name: string): Promise<void> => symlink(join(installed, name), join(folder, name));
      for (const name of readdirSync(installed)) if (name !== RECENT) await install(name);
      const plain = (number: number): readonly Manifest[] =>
        dualStack(`web-${number}`, { number, ports: [{ port: 80 }], endpoints: ['pod-a'] });
      const sticky = dualStack('sticky', {
        number: 42,
        affinitySeconds: 600,
        ports: [{ port: 80 }],
        endpoints: ['pod-a'],
      });
      const env = { XTABLES_LIBDIR: folder };
      const proxy = await Proxy.start(t, lab, { mode, objects: [...plain(41), ...sticky], env });
      const answers = async (number: number): Promise<true | null> => {
        const answers = FAMILY_VIEWS.map((view) =>
          lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(number), 80), timeoutMs: 300 }),
        );
        return (await Promise.all(answers)).every((answer) => 'name' in answer) || null;
      };
      await eventually('an answer from the start', () => answers(41));
      t.notOk(await answers(42));
      t.equal([...proxy.log.matchAll(/"this node is at fault".*libxt_recent\.so/g)].length, 2, 'once for each family');
      t.notMatch(proxy.log, /"the kernel refuses a frontend/);
      const { stdout } = await lab.run('node', [PROGRAM, 'status', '--status-socket', proxy.statusSocket]);
      t.match(stdout, /install the iptables package that has libxt_recent\.so/);
      for (const view of FAMILY_VIEWS)
        t.ok(stdout.includes(`${endpoint(view.clusterIP(42), 80)}/TCP`), 'status says which');
      await proxy.write([...plain(41), ...sticky, ...plain(43)]);
      await eventually('a new Service', () => answers(43));
      await install(RECENT);
      await eventually('the Service that was refused', () => answers(42), 90_000);
      await proxy.consistent();
    },
  );
}

for (const [mode] of MODES) {
  t.test(
    `${mode}: a node without match statistic is unhealthy, keeps what works, and recovers by itself`,
    { skip: INSTALLED === null ? 'needs installed programs, whose extensions it takes away' : false },
    async (t) => {
      const lab = await Lab.start(t);
      await lab.serveAll(PODS, [[80, 'TCP']]);
      const folder = t.testdir();
      const installed = INSTALLED ?? '';
      for (const name of readdirSync(installed)) await symlink(join(installed, name), join(folder, name));
      const web = (number: number, endpoints: readonly (typeof PODS)[number][]): readonly Manifest[] =>
        dualStack(`web-${number}`, { number, ports: [{ port: 80 }], endpoints });
      const rows = (number: number, pods: readonly (typeof PODS)[number][]): readonly Row[] =>
        FAMILY_VIEWS.map((view) => ({
          from: 'pod-c',
          to: endpoint(view.clusterIP(number), 80),
          expect: view.kept(pods, 80),
        }));
      const health = async (): Promise<number | null> => {
        const answer = await lab.http('node', 'http://127.0.0.1:10256/healthz');
        return 'status' in answer ? answer.status : null;
      };
      const healthIs = (status: number): Promise<true> =>
        eventually(`status ${status}`, async () => ((await health()) === status ? true : null), 90_000);
      const before = [41, 42, 43].map((number) => web(number, ['pod-a']));
      const env = { XTABLES_LIBDIR: folder };
      const proxy = await Proxy.start(t, lab, { mode, objects: before.flat(), env });
      await rm(join(folder, 'libxt_statistic.so'));
      // Programs cannot list a rule without its extension: none of them has such a match yet.
      await proxy.write([...[41, 42, 43].flatMap((number) => web(number, PODS)), ...web(44, ['pod-b'])]);
      await healthIs(503);
      const faults = /"this node is at fault".* fault="this node lacks match statistic .*libxt_statistic\.so"/g;
      await eventually('both families', () => Promise.resolve([...proxy.log.matchAll(faults)].length >= 2 || null));
      for (const view of FAMILY_VIEWS) {
        const former = await lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });
        t.match(former, { name: 'pod-a' }, 'its old rules stay');
      }
      await checkRows(t, lab, rows(44, ['pod-b']));
      t.equal([...proxy.log.matchAll(faults)].length, 2, 'once for each family');
      t.notMatch(proxy.log, /"the kernel refuses a frontend/, 'and not for each Service');
      const status = await lab.run('node', [PROGRAM, 'status', '--status-socket', proxy.statusSocket]);
      t.match(status, { status: 1, stdout: /lacks match statistic .*\n.*remedy: install .*libxt_statistic\.so/ });
      const initialised = await proxy.initialise(['env', `XTABLES_LIBDIR=${folder}`]);
      t.match(initialised, { status: 1, stderr: /lacks match statistic .*libxt_statistic\.so; install/ });
      await symlink(join(installed, 'libxt_statistic.so'), join(folder, 'libxt_statistic.so'));
      await healthIs(200);
      await checkRows(t, lab, [...rows(41, PODS), ...rows(44, ['pod-b'])]);
      await proxy.consistent();
      t.match(await proxy.initialise(['env', `XTABLES_LIBDIR=${folder}`]), { status: 0 });
    },
  );
}

for (const [mode] of MODES) {
  t.test(`${mode}: dropped and loopback packets are counted, and affinity clients are shown`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, { mode, objects: OBJECTS, config: { nodePortAddresses: ['0.0.0.0/0'] } });
    const counted = async (): Promise<readonly number[]> => {
      const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
      const text = 'body' in answer ? answer.body : '';
      return [...text.matchAll(/^kubeproxy_iptables_\w+_packets_total (\d+)$/gm)].map(([, count]) => Number(count));
    };
    t.same(await counted(), [0, 0], 'ME-16, ME-17');
    await lab.routesLoopback();
    const request = { from: 'node', to: '127.0.0.1:30001', timeoutMs: 3000 };
    t.equal(
      (await lab.burst(request, 5)).reduce((sum, outcome) => sum + ('name' in outcome ? outcome.count : 0), 0),
      5,
    );
    await lab.request({ ...request, to: IPV4.nodePort(30001) });
    t.same(await counted(), [0, 5], 'E-61: connections to loopback alone');
    await lab.output('pod-c', ['python3', '-c', RESETS, '10.244.2.10', '4']);
    t.same(await counted(), [4, 5], 'IT-22: resets of unknown connections');
    await proxy.restart();
    t.same(await counted(), [4, 5], 'the kernel goes on counting');
    await proxy.consistent();

    for (const view of FAMILY_VIEWS) {
      const to = endpoint(view.clusterIP(42), 80);
      const [client, stranger] = [view.address('pod-c'), view.address('client')];
      const answer = await lab.request({ from: 'pod-c', to, timeoutMs: 3000 });
      const { kernel } = await proxy.explain(client, to);
      t.same([kernel.agrees, kernel.remembered], [true, 'at' in answer ? answer.at : ''], 'where it went');
      t.equal((await proxy.explain(stranger, to)).kernel.remembered, null);
      t.equal((await proxy.explain(client, endpoint(view.clusterIP(41), 80))).kernel.remembered, null, 'no affinity');
    }
  });
}

/** Sends TCP resets out of nowhere: address, count. */
const RESETS = `
import socket, struct, sys
to, count = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as raw:
    for index in range(count):
        head = struct.pack('!HHIIBBHHH', 40000 + index, 80, 1, 0, 5 << 4, 4, 1024, 0, 0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((to, 80))
            source = socket.inet_aton(probe.getsockname()[0])
        pseudo = source + socket.inet_aton(to) + struct.pack('!BBH', 0, 6, len(head)) + head
        total = sum(struct.unpack('!%dH' % (len(pseudo) // 2), pseudo))
        total = (total >> 16) + (total & 0xffff)
        total = ~(total + (total >> 16)) & 0xffff
        raw.sendto(head[:16] + struct.pack('!H', total) + head[18:], (to, 0))
`;

async function isConsistent(proxy: Proxy): Promise<true | null> {
  try {
    await proxy.consistent();
    return true;
  } catch {
    return null;
  }
}
