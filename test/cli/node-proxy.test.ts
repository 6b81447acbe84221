// The parts of the process put together, on a kernel in memory: what becomes of a changed configuration that cannot be followed as it should.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { VersionDigest } from '../../src/base/version-digest.js';
import { compareConfigs } from '../../src/config/compare.js';
import type { Loaded } from '../../src/config/load.js';
import { openEvents } from '../../src/cli/events.js';
import { NodeProxy } from '../../src/cli/node-proxy.js';
import { logTransactions, prepareMode } from '../../src/control/mode.js';
import type { Host } from '../../src/host/host.js';
import { LINK } from '../../src/dataplane/ipvs/names.js';
import { printServiceEndpoint } from '../../src/dataplane/ipvs/print.js';
import { nameService } from '../../src/dataplane/ipvs/wire.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { applyKernelValues } from '../../src/host/linux/sysctl.js';
import type { Logger } from '../../src/observe/log.js';
import type { NodeAnswer } from '../../packages/page/src/node-answer.js';
import { fromFile } from '../config/load-from.js';
import { nodeObject, serviceObject } from '../support/api-objects.js';
import { metadataOf } from '../support/api-server/resources.js';
import { ApiServer } from '../support/api-server/server.js';
import { IpvsWorld } from '../support/fake-ipvs/world.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { eventually } from '../support/lab/lab.js';
import { curl } from '../support/curl.js';
import { RecordingLog } from '../support/recording-log.js';

class ProxyLog extends RecordingLog implements Logger {
  /** Where metrics are served; null: not yet. */
  metricsPort: number | null = null;
  /** What new outputs wait for. */
  prepared: Promise<unknown> = Promise.resolve();

  override info(verbosity: number, message: string, fields?: Readonly<Record<string, unknown>>): void {
    super.info(verbosity, message);
    if (message === 'serving metrics') this.metricsPort = Number(fields?.['port']);
  }

  enabled(): boolean {
    return false;
  }

  setThresholds(): void {
    // All lines are kept.
  }

  async prepare(): Promise<() => void> {
    await this.prepared;
    return () => this.lines.push('new outputs');
  }
}

interface World {
  readonly proxy: NodeProxy;
  readonly kernel: FakeKernel;
  readonly log: ProxyLog;
  /** What setting sysctls waits for. */
  readonly sysctls: { wait: Promise<unknown> };
  readonly stop: () => Promise<void>;
  readonly configuration: (more: string) => Loaded;
}

async function world(t: Test, kernel?: FakeKernel, more?: Partial<Host>, master?: string): Promise<World> {
  const made = await unstarted(t, kernel, more, master);
  await made.proxy.start();
  await written(made.kernel);
  return made;
}

function written({ committed }: FakeKernel): Promise<unknown> {
  return eventually('rules', () => Promise.resolve(committed.length > 0 || null));
}

async function unstarted(
  t: Test,
  kernel = new FakeKernel(loadCompiler()),
  more: Partial<Host> = {},
  master = '',
  given: readonly string[] = [],
): Promise<World> {
  const manifest = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [{ port: 80 }] },
  });
  const folder = t.testdir({ 'web.json': manifest });
  const configuration = (more: string): Loaded => {
    const flags = ['--status-socket=', `--manifests=${join(folder, 'web.json')}`, `--master=${master}`, ...given];
    const mode = more.startsWith('mode:') ? '' : 'mode: nftables\n';
    const loaded = fromFile(`${mode}clusterCIDR: 10.0.0.0/8\n${more}`, flags);
    const metrics = { address: parseAddress('127.0.0.1')!, port: 0 };
    const manifests = loaded.config.manifests.slice(-1);
    return { ...loaded, config: { ...loaded.config, healthz: null, metrics, manifests } };
  };
  const loaded = configuration('');
  const log = new ProxyLog();
  const sysctls = { wait: Promise.resolve() as Promise<unknown> };
  const host: Host = {
    ...LINUX_HOST,
    families: () => ['IPv4'],
    applyKernelValues: () => sysctls.wait.then(() => ({ written: [], problems: [], seen: [] })),
    setOomPriority: () => Promise.resolve(null),
    ...more,
  };
  const machine = { host, addon: kernel };
  const mode = await prepareMode(loaded.config, machine, ['IPv4'], log, logTransactions(log));
  const events = await openEvents(loaded.config, log);
  const onFatal = (error: Error): unknown => t.fail(error.message);
  const proxy = new NodeProxy({ loaded, machine, mode, log, events, tracing: null, onFatal });
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await proxy.stop();
  };
  t.teardown(stop);
  return { proxy, kernel, log, sysctls, stop, configuration };
}

/** Something that waits, and what ends it. */
function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}

/** A folder beside that of the manifests, with an audit policy in it. */
function policyFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-start-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(join(folder, 'policy.yaml'), POLICY);
  return folder;
}

const POLICY = JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] });

t.test('rules are written at a start before the files of the metrics address have been read', async (t) => {
  const folder = policyFolder(t);
  const policy = join(folder, 'pipe');
  // A pipe without a writer, like a file of a dead disk.
  execFileSync('mkfifo', [policy]);
  const flags = ['--metrics-tls', `--cert-dir=${folder}`, `--audit-policy-file=${policy}`, '--audit-log-path=-'];
  const { proxy, kernel, log } = await unstarted(t, undefined, {}, '', flags);
  t.teardown(() => {
    // Ends the wait for a writer, also when the test fails.
    closeSync(openSync(policy, constants.O_RDWR | constants.O_NONBLOCK));
  });
  let isStarted = false;
  const starting = proxy.start().then(() => (isStarted = true));
  await written(kernel);
  t.same([isStarted, log.metricsPort], [false, null]);
  await writeFile(policy, POLICY);
  renameSync(join(folder, 'policy.yaml'), policy);
  await starting;
  t.ok(log.metricsPort);
});

t.test('a start without room for certificate and logs writes rules, and reports what it loses', async (t) => {
  const folder = policyFolder(t);
  // Nobody can make a folder there; on a full disk no file.
  const [audit, changes] = ['/sys/pointsman/audit.log', '/sys/pointsman/changes.log'];
  const flags = ['--metrics-tls', '--cert-dir=/sys/pointsman', `--change-log-path=${changes}`];
  const audited = [`--audit-policy-file=${join(folder, 'policy.yaml')}`, `--audit-log-path=${audit}`];
  for (const mode of ['batch', 'blocking-strict']) {
    const given = [...flags, ...audited, `--audit-log-mode=${mode}`];
    const { proxy, kernel, log, stop } = await unstarted(t, undefined, {}, '', given);
    await proxy.start();
    await written(kernel);
    t.ok(log.lines.some((line) => line.startsWith('error Events about requests are lost')));
    t.ok(log.lines.some((line) => line.startsWith('error changes of the kernel are not logged')));
    const { body, status } = await curl(`https://127.0.0.1:${log.metricsPort}/ui/api/triage`, '--insecure');
    t.equal(status, mode === 'batch' ? 200 : 500, mode);
    for (const flag of status === 200 ? ['audit', 'change'] : [])
      t.match(body, new RegExp(`"severity":"warning","text":"--${flag}-log-path: lines are lost: E`));
    await stop();
  }
});

t.test('a start with a log path that is a directory is refused', async (t) => {
  const folder = policyFolder(t);
  const audited = ['--metrics-tls', `--cert-dir=${folder}`, `--audit-policy-file=${join(folder, 'policy.yaml')}`];
  for (const [flag, flags] of [
    ['--change-log-path', []],
    ['--audit-log-path', audited],
  ] as const) {
    const { proxy, stop } = await unstarted(t, undefined, {}, '', [...flags, `${flag}=${folder}`]);
    await t.rejects(proxy.start(), {
      name: 'ConfigError',
      message: `${flag}: ${folder}: cannot be written to: is no file`,
    });
    await stop();
  }
});

t.test('a changed configuration is in the kernel before slow sysctls are set', async (t) => {
  const { proxy, kernel, sysctls, configuration } = await world(t);
  const { open, passed } = gate();
  sysctls.wait = passed;
  const before = kernel.committed.length;
  const done = proxy.reconfiguration.apply(configuration('nftables: {masqueradeAll: true}\n'));
  await eventually('other rules', () => Promise.resolve(kernel.committed.length > before || null));
  open();
  await done;
  t.equal(proxy.reconfiguration.loaded.config.masqueradeAll, true);
});

t.test('an oom_score_adj that cannot be written is logged at the start and at its own changes', async (t) => {
  const message = 'oom_score_adj cannot be written';
  const problem = { path: 'oom_score_adj', wanted: 0, found: null, errno: 'EACCES', message };
  const { proxy, log, configuration } = await world(t, undefined, { setOomPriority: () => Promise.resolve(problem) });
  const warnings = (): number => log.lines.filter((line) => line.includes(message)).length;
  t.equal(warnings(), 1);
  await proxy.reconfiguration.apply(configuration('nftables: {masqueradeAll: true}\n'));
  await proxy.reconfiguration.apply(configuration('configSyncPeriod: 10m\n'));
  t.equal(warnings(), 1);
  await proxy.reconfiguration.apply(configuration('oomScoreAdj: 7\n'));
  t.equal(warnings(), 2);
});

t.test('a reconfiguration that fails during its preparation changes nothing', async (t) => {
  const { proxy, kernel, log, configuration } = await world(t);
  const before = kernel.committed.length;
  const next = configuration('nftables: {masqueradeAll: true}\nlogging: {format: json}\n');
  log.prepared = Promise.reject(new Error('logging.format: cannot be loaded'));
  await t.rejects(proxy.reconfiguration.apply(next), { message: 'logging.format: cannot be loaded' });
  t.equal(proxy.reconfiguration.loaded.config.masqueradeAll, false);
  log.prepared = Promise.resolve();
  t.notOk(log.lines.includes('new outputs'));
  t.equal(kernel.committed.length, before);
  await proxy.reconfiguration.apply(next);
  t.ok(log.lines.includes('new outputs'));
  await eventually('other rules', () => Promise.resolve(kernel.committed.length > before || null));
});

t.test('a configuration that arrives while the process ends changes nothing', async (t) => {
  const { proxy, log, stop, configuration } = await world(t);
  const { open, passed } = gate();
  log.prepared = passed;
  const next = configuration('logging: {format: json}\n');
  const late = proxy.reconfiguration.filesChanged({
    type: 'apply',
    changes: compareConfigs(proxy.reconfiguration.loaded.config, next.config),
    ...next,
  });
  const stopped = stop();
  open();
  t.equal(await late, false);
  await stopped;
  t.equal(proxy.reconfiguration.loaded.config.logging.format, 'text');
  t.notOk(
    log.lines.some((line) => line.includes('refused')),
    'and is not called refused',
  );
});

/** Sysctls in memory, each 0 before it is set. */
class Sysctls {
  readonly values = new Map<string, string>();
  readonly host: Pick<Host, 'applyKernelValues'> = {
    applyKernelValues: (values) =>
      applyKernelValues(values, {
        read: (path) => this.values.get(path) ?? '0',
        write: (path, text) => {
          this.values.set(path, text);
          return Promise.resolve();
        },
      }),
  };

  get(name: string): string | undefined {
    return this.values.get(`/proc/sys/${name.replaceAll('.', '/')}`);
  }
}

t.test('EV-05, ST-46: a live switch to ipvs mode and back applies every setting of the mode', async (t) => {
  const server = new ApiServer();
  await server.start();
  t.teardown(() => server.stop());
  server.put(nodeObject(fromFile('').config.nodeName));
  const { addon: kernel, programs } = new IpvsWorld([parseAddress('192.168.0.2')!]);
  const { ipvs, ipset, route } = kernel;
  const sysctls = new Sysctls();
  const { proxy, log, configuration } = await world(t, kernel, sysctls.host, server.url);
  const foreign = { ...nameService({ address: parseAddress('203.0.113.9')!, port: 80, protocol: 'TCP' }) };
  const state = { scheduler: 'wlc', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  await ipvs.ipvsApply([{ type: 'service', verb: 'new', service: foreign, state }]);
  const held = (): readonly string[] =>
    [...ipvs.services.values()].map(({ service, state }) => `${printServiceEndpoint(service)} ${state.scheduler}`);
  const holds = (...services: readonly string[]): Promise<unknown> =>
    eventually(services.join(), () => Promise.resolve(held().join() === services.join() || null));
  const apply = ipvs.ipvsApply.bind(ipvs);
  const tracked = new Set<string | undefined>();
  ipvs.ipvsApply = (operations) => {
    const isTrial = operations.some(({ service }) => service.port === 20_000);
    if (!isTrial) tracked.add(sysctls.get('net.ipv4.vs.conntrack'));
    return apply(operations);
  };
  const deprecations = (): number => server.events.filter(({ reason }) => reason === 'IPVSDeprecation').length;

  await proxy.reconfiguration.apply(configuration('mode: ipvs\n'));
  await holds('203.0.113.9:80 wlc', '10.96.0.10:80 rr');
  await eventually('the event', () => Promise.resolve(deprecations() || null));
  t.match(
    server.events.find(({ reason }) => reason === 'IPVSDeprecation'),
    { type: 'Warning', action: 'StartKubeProxy' },
  );
  t.ok(log.lines.some((line) => /^warn .*mode ipvs is deprecated/.test(line)));
  await eventually('no table', () => Promise.resolve(kernel.table('ip') === null || null));
  t.equal(sysctls.get('net.ipv4.ip_forward'), '1');

  const excluded = nameService({ address: parseAddress('10.96.7.7')!, port: 7, protocol: 'TCP' });
  await apply([{ type: 'service', verb: 'new', service: excluded, state }]);
  route.links.get(LINK)?.add(parseAddress('10.96.7.7')!);
  const settings = 'scheduler: mh, strictARP: true, tcpTimeout: 10m, tcpFinTimeout: 20s, udpTimeout: 30s';
  await proxy.reconfiguration.apply(configuration(`mode: ipvs\nipvs: {${settings}, excludeCIDRs: [10.96.7.0/24]}\n`));
  t.same([sysctls.get('net.ipv4.conf.all.arp_ignore'), sysctls.get('net.ipv4.conf.all.arp_announce')], ['1', '2']);
  await holds('203.0.113.9:80 wlc', '10.96.0.10:80 mh', '10.96.7.7:7 wlc');
  await eventually('timeouts', () => Promise.resolve(ipvs.timeouts.tcp === 600 || null));
  t.same(ipvs.timeouts, { tcp: 600, tcpFin: 20, udp: 30 });
  const unknown = configuration('mode: ipvs\nipvs: {scheduler: unknown}\n');
  await t.rejects(proxy.reconfiguration.apply(unknown), {
    message: 'ipvs.scheduler: this kernel has no scheduler "unknown"',
  });
  // The address went: no Service has it.
  route.links.get(LINK)?.add(parseAddress('10.96.7.7')!);
  await proxy.reconfiguration.apply(configuration('mode: ipvs\nipvs: {syncPeriod: 1h, minSyncPeriod: 1s}\n'));
  await holds('203.0.113.9:80 wlc', '10.96.0.10:80 rr');
  t.equal(sysctls.get('net.ipv4.conf.all.arp_ignore'), '0');
  t.equal(proxy.reconfiguration.loaded.config.syncPeriod, 3_600_000);
  t.same(ipvs.timeouts, { tcp: 600, tcpFin: 20, udp: 30 }, 'what is not asked for stays');
  t.equal(deprecations(), 1);
  t.same([...tracked], ['1'], 'conntrack knows connections from the first on');

  tracked.clear();
  await proxy.reconfiguration.apply(configuration('mode: iptables\n'));
  await eventually('the sysctl', () => Promise.resolve(sysctls.get('net.ipv4.vs.conntrack') === '0' || null));
  t.same(held(), ['203.0.113.9:80 wlc'], 'what others made stays');
  t.notOk(route.links.has(LINK));
  t.equal(ipset.sets.size, 0);
  t.same([...tracked], ['1'], 'and until the last');
  t.equal(sysctls.get('net.ipv4.ip_forward'), '1');
  t.ok(programs.every('nat', 'IPv4').has('KUBE-SERVICES'));
});

t.test('the page reports the object versions that the node holds, as a digest', async (t) => {
  const server = new ApiServer();
  await server.start();
  t.teardown(() => server.stop());
  const { resourceVersion } = metadataOf(server.store.put(serviceObject('dns', { clusterIP: '10.96.0.53' })));
  const { log } = await world(t, undefined, {}, server.url);
  const port = await eventually('the metrics address', () => Promise.resolve(log.metricsPort));
  const answer = await fetch(`http://127.0.0.1:${port}/ui/api/node`);
  const { held } = (await answer.json()) as NodeAnswer;
  const digest = new VersionDigest();
  digest.add('default/dns', String(resourceVersion));
  t.same(held, [
    { resource: 'services', count: 1, sums: digest.sums },
    { resource: 'endpointslices', count: 0, sums: new VersionDigest().sums },
  ]);
});
