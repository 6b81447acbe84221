// Has the program run twice as on a node, with a kernel in memory and the test API server: it starts, is asked how it does, follows changes, and starts again
// with its rules in place. What V8 compiled for that is what a proxy needs; of the rest it would only be memory.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { CHANGES, OBJECTS } from './rehearsal-objects.mjs';

const LIVES = ['from nothing', 'with its rules in place'];
/** Services, endpoints of each, and nodes that the API server makes up. */
const CLUSTER = '20,5,3';
/** A life takes a second where nothing else runs. */
const PATIENCE_MS = 120_000;

const addonOf = (project) => `${project}build/Release/pointsman.node`;

/** Whether there can be one: the addon of Linux spells the rules. What has none is built to be looked at, or for Windows. */
export function canRehearse(project) {
  return process.platform === 'linux' && existsSync(addonOf(project));
}

/**
 * Leaves beside every file that the program has read what V8 compiled of it.
 *
 * @param main that starts the program.
 */
export async function rehearse(project, main) {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-rehearsal-'));
  try {
    await bundleParts(project, folder);
    const server = await ApiServer.start(join(folder, 'api-server.mjs'));
    try {
      await server.put(OBJECTS);
      for (const life of LIVES) {
        const proxy = await Proxy.start({ project, main, folder, url: server.url });
        try {
          await proxy.within(live(proxy, server));
        } catch (error) {
          throw new Error(`rehearsal ${life}: ${error.message}\n${proxy.log}`, { cause: error });
        } finally {
          proxy.child.kill('SIGKILL');
        }
      }
    } finally {
      server.child.kill();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function bundleParts(project, folder) {
  const options = { bundle: true, platform: 'node', target: 'node20', absWorkingDir: project, logLevel: 'warning' };
  await build({
    ...options,
    format: 'esm',
    entryPoints: ['test/support/api-server/main.ts'],
    outfile: join(folder, 'api-server.mjs'),
  });
  await build({
    ...options,
    format: 'cjs',
    entryPoints: ['bundle/rehearsal-kernel.mjs'],
    outfile: join(folder, 'kernel.cjs'),
  });
}

async function live(proxy, server) {
  while (!(await proxy.ask('healthz', proxy.healthz)).ok) await sleep(10);
  for (let round = 0; round < 2; round++) await proxy.ask('metrics', proxy.metrics);
  for (const object of CHANGES) {
    const before = await proxy.transactions();
    await server.put([object]);
    while ((await proxy.transactions()) === before) await sleep(2);
  }
  proxy.child.send('write');
}

class ApiServer {
  static async start(script) {
    const server = new ApiServer();
    server.child = spawn(process.execPath, [script, '--cluster', CLUSTER], { stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = await once(createInterface({ input: server.child.stdout }), 'line');
    return Object.assign(server, JSON.parse(line));
  }

  async put(objects) {
    const response = await fetch(`${this.control}/put`, { method: 'POST', body: JSON.stringify(objects) });
    if (!response.ok) throw new Error(`API server: ${await response.text()}`);
  }
}

/** One life of the program. */
class Proxy {
  log = '';

  static async start({ project, main, folder, url }) {
    const proxy = new Proxy();
    [proxy.healthz, proxy.metrics] = await freePorts();
    const config = join(folder, 'config.yaml');
    writeFileSync(config, proxy.configuration(folder, url));
    const argv = ['--config', config, '--hostname-override', 'node-0', '--status-socket='];
    proxy.child = spawn(process.execPath, ['-r', `${project}bundle/rehearsal.cjs`, main, ...argv], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // The rest of this machine's environment has no influence.
      env: {
        POINTSMAN_ADDON: join(folder, 'kernel.cjs'),
        POINTSMAN_REHEARSAL: JSON.stringify({ addon: addonOf(project), transactions: join(folder, 'transactions') }),
      },
    });
    proxy.child.on('message', (count) => proxy.answered(count));
    proxy.child.stderr.setEncoding('utf8').on('data', (text) => (proxy.log += text));
    return proxy;
  }

  /** The configuration as nodes have it, in YAML; it depends on nothing of the machine. */
  configuration(folder, server) {
    const kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'here',
        contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
        clusters: [{ name: 'here', cluster: { server } }],
        users: [{ name: 'me', user: { token: 'rehearsal' } }],
      }),
    );
    return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
nftables: { minSyncPeriod: 0s, syncPeriod: 1h }
clusterCIDR: 10.244.0.0/16
detectLocalMode: ClusterCIDR
healthzBindAddress: 127.0.0.1:${this.healthz}
metricsBindAddress: 127.0.0.1:${this.metrics}
clientConnection:
  kubeconfig: ${JSON.stringify(kubeconfig)}
  contentType: application/vnd.kubernetes.protobuf
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`;
  }

  /** What is on a page; before it listens that is nothing, and not well. */
  async ask(page, port) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/${page}`);
      await response.text();
      return response;
    } catch {
      return { ok: false };
    }
  }

  /** How many the kernel has committed. */
  async transactions() {
    return await new Promise((resolve) => {
      this.answered = resolve;
      this.child.send('transactions');
    });
  }

  /** Waits for work with the process, which then ends by itself, and for that. */
  async within(work) {
    const ended = once(this.child, 'exit');
    const early = ended.then(() => {
      throw new Error('the program has ended');
    });
    const late = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
      throw new Error(`took more than ${PATIENCE_MS} ms`);
    });
    await Promise.race([work, early, late]);
    const [status] = await Promise.race([ended, late]);
    if (status !== 0) throw new Error(`ended with ${status}`);
  }
}

/** Ports without a listener. */
async function freePorts() {
  const servers = [createServer(), createServer()];
  const ports = [];
  for (const server of servers) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ports.push(server.address().port);
  }
  for (const server of servers) await once(server.close(), 'close');
  return ports;
}
