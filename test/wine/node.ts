import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import { nodeObject, type ApiObject } from '../support/api-objects.js';
import { FakeHns } from '../support/fake-hns/fake-hns.js';
import { projectFile } from '../support/lab/agent.js';
import { HnsServer } from './hns-server.js';
import { runNode, startNode, windowsPath, type WindowsProcess, type WindowsResult } from './windows.js';

export const PROGRAM = windowsPath(projectFile('dist/main.js'));
export const NODE_NAME = 'node-a';

const LIMIT_MS = 90_000;
const PAUSE_MS = 20;

/** Of this machine, and so of what runs under Wine. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Waits until it holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const start = Date.now();
  while (!(await holds())) {
    if (Date.now() - start > LIMIT_MS) throw new Error(`it did not come to this: ${what}`);
    await pause(PAUSE_MS);
  }
}

/** A Windows node: its HNS, a folder with the program's files, and the program. */
export class WindowsNode {
  readonly hns = new FakeHns();
  readonly server = new HnsServer(this.hns);
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-node-'));
  readonly manifests = join(this.folder, 'manifests');
  readonly config = join(this.folder, 'config.yaml');
  running: WindowsProcess | null = null;

  private constructor(
    readonly environment: Readonly<Record<string, string>>,
    readonly ports: { readonly healthz: number; readonly metrics: number },
  ) {
    mkdirSync(this.manifests);
    this.hns.addNetwork('cbr0');
    this.put('node', nodeObject(NODE_NAME, { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } }));
  }

  static async make(t: Test): Promise<WindowsNode> {
    const environment: Record<string, string> = {};
    const node = new WindowsNode(environment, { healthz: await freePort(), metrics: await freePort() });
    Object.assign(environment, await node.server.start());
    node.configure({});
    t.teardown(async () => {
      if (!t.passing()) t.comment(node.running?.stderr() ?? 'it does not run');
      await node.kill();
      node.server.stop();
      rmSync(node.folder, { recursive: true });
    });
    return node;
  }

  /** @param fields of the configuration, beside those that every one has. */
  configure(fields: Readonly<Record<string, unknown>>): void {
    const config = {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'kernelspace',
      hostnameOverride: NODE_NAME,
      bindAddress: '192.0.2.1',
      winkernel: { networkName: 'cbr0' },
      healthzBindAddress: `127.0.0.1:${this.ports.healthz}`,
      metricsBindAddress: `127.0.0.1:${this.ports.metrics}`,
      ...fields,
    };
    writeFileSync(this.config, JSON.stringify(config));
  }

  put(name: string, ...objects: readonly ApiObject[]): void {
    writeFileSync(
      join(this.manifests, `${name}.json`),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    );
  }

  arguments(...more: readonly string[]): readonly string[] {
    return [PROGRAM, '--config', windowsPath(this.config), ...more];
  }

  get fromManifests(): readonly string[] {
    return ['--manifests', windowsPath(this.manifests)];
  }

  start(...more: readonly string[]): WindowsProcess {
    this.running = startNode(this.arguments(...more), this.environment);
    return this.running;
  }

  async kill(): Promise<void> {
    this.running?.child.kill('SIGKILL');
    await this.running?.status;
    this.running = null;
  }

  /** A command that is configured as the proxy is. */
  command(name: string, ...more: readonly string[]): Promise<WindowsResult> {
    return runNode([PROGRAM, name, ...this.arguments(...more).slice(1)], this.environment);
  }

  /** Asks the running process, which alone is configured. */
  status(): Promise<WindowsResult> {
    return runNode([PROGRAM, 'status'], this.environment);
  }

  /** Until everything has been programmed; a process that ended will never come to that. */
  async healthy(): Promise<void> {
    await until('health', async () => {
      const { running } = this;
      if (running === null || running.child.exitCode !== null) throw new Error(`it ended: ${running?.stderr() ?? ''}`);
      return await this.get('healthz', '/healthz').then(
        ({ status }) => status === 200,
        () => false,
      );
    });
  }

  async get(port: 'healthz' | 'metrics', path: string): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.ports[port]}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  /** What HNS holds of load balancers and endpoints, in an order that does not depend on ids. */
  held(): readonly string[] {
    const { loadBalancers, endpoints } = this.hns;
    const parsed = [...loadBalancers.values()].map(({ FrontendVIPs = [], HostComputeEndpoints = [] }) =>
      [...FrontendVIPs, 'to', ...HostComputeEndpoints.flatMap((id) => this.hns.addressesOf(id)).sort()].join(' '),
    );
    return [...parsed, ...[...endpoints.keys()].map((id) => String(this.hns.addressesOf(id)[0]))].sort();
  }
}
