// The parts of the process put together, on a kernel in memory: what becomes of a changed configuration that cannot be followed as it should.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import type { Loaded } from '../../src/config/load.js';
import { NodeProxy } from '../../src/cli/node-proxy.js';
import { logTransactions, prepareMode } from '../../src/control/mode.js';
import type { Host } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import type { Logger } from '../../src/observe/log.js';
import { fromFile } from '../config/load-from.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { eventually } from '../support/lab/lab.js';
import { RecordingLog } from '../support/recording-log.js';

class ProxyLog extends RecordingLog implements Logger {
  /** What new outputs wait for. */
  prepared: Promise<unknown> = Promise.resolve();

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

async function world(t: Test): Promise<World> {
  const manifest = JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' } },
    spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [{ port: 80 }] },
  });
  const folder = t.testdir({ 'web.json': manifest });
  const configuration = (more: string): Loaded => {
    const flags = ['--status-socket=', `--manifests=${join(folder, 'web.json')}`];
    const loaded = fromFile(`mode: nftables\nclusterCIDR: 10.0.0.0/8\n${more}`, flags);
    const metrics = { address: parseAddress('127.0.0.1')!, port: 0 };
    const manifests = loaded.config.manifests.slice(-1);
    return { ...loaded, config: { ...loaded.config, healthz: null, metrics, manifests } };
  };
  const loaded = configuration('');
  const kernel = new FakeKernel(loadCompiler());
  const log = new ProxyLog();
  const sysctls = { wait: Promise.resolve() as Promise<unknown> };
  const host: Host = {
    ...LINUX_HOST,
    families: () => ['IPv4'],
    applyKernelValues: () => sysctls.wait.then(() => ({ written: [], problems: [] })),
    setOomPriority: () => Promise.resolve(null),
  };
  const machine = { host, addon: kernel };
  const mode = await prepareMode(loaded.config, machine, ['IPv4'], log, logTransactions(log));
  const proxy = new NodeProxy({ loaded, machine, mode, log, onFatal: (error) => t.fail(error.message) });
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await proxy.stop();
  };
  t.teardown(stop);
  await proxy.start();
  await eventually('rules', () => Promise.resolve(kernel.committed.length > 0 || null));
  return { proxy, kernel, log, sysctls, stop, configuration };
}

/** Something that waits, and what ends it. */
function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}

t.test('another configuration is in the kernel, whatever the rest of it waits for', async (t) => {
  const { proxy, kernel, sysctls, configuration } = await world(t);
  const { open, passed } = gate();
  sysctls.wait = passed;
  const before = kernel.committed.length;
  const done = proxy.reconfigure(configuration('nftables: {masqueradeAll: true}\n'));
  await eventually('other rules', () => Promise.resolve(kernel.committed.length > before || null));
  open();
  await done;
  t.equal(proxy.inForce.config.masqueradeAll, true);
});

t.test('what fails while it is made ready leaves everything as it was', async (t) => {
  const { proxy, kernel, log, configuration } = await world(t);
  const before = kernel.committed.length;
  const next = configuration('nftables: {masqueradeAll: true}\nlogging: {format: json}\n');
  log.prepared = Promise.reject(new Error('logging.format: cannot be loaded'));
  await t.rejects(proxy.reconfigure(next), { message: 'logging.format: cannot be loaded' });
  t.equal(proxy.inForce.config.masqueradeAll, false);
  log.prepared = Promise.resolve();
  t.notOk(log.lines.includes('new outputs'));
  t.equal(kernel.committed.length, before);
  await proxy.reconfigure(next);
  t.ok(log.lines.includes('new outputs'));
  await eventually('other rules', () => Promise.resolve(kernel.committed.length > before || null));
});

t.test('a configuration that comes while the process ends changes nothing', async (t) => {
  const { proxy, log, stop, configuration } = await world(t);
  const { open, passed } = gate();
  log.prepared = passed;
  const late = proxy.reconfigure(configuration('logging: {format: json}\n'));
  const stopped = stop();
  open();
  await t.rejects(late, { message: 'the process is about to end' });
  await stopped;
  t.equal(proxy.inForce.config.logging.format, 'text');
});
