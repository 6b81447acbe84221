import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ApiObject } from '../test/support/api-objects.js';
import { Authority } from '../test/support/certificates.js';
import { TOKEN } from '../test/support/kube-apiserver.js';
import { NODES, type Cluster } from './cluster.js';

const SCRIPT = fileURLToPath(new URL('../test/support/api-server/main.js', import.meta.url));

/** What a benchmark asks of an API server. */
export interface BenchApiServer {
  /** The kubeconfig for the proxy. */
  readonly kubeconfig: string;
  /** Writes objects; resolves with when the first was, or was sent, in milliseconds of the clock that all processes share. */
  put(...objects: readonly ApiObject[]): Promise<number>;
  /** Changes slices evenly; resolves when the last is changed. */
  churn(cluster: Cluster, perSecond: number, seconds: number): Promise<void>;
  stop(): Promise<void>;
}

/** The test API server in a process of its own, over TLS, with a generated cluster. */
export class ApiServerProcess implements BenchApiServer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly authority: Authority,
    private readonly control: string,
    readonly kubeconfig: string,
  ) {}

  static async start(cluster: Cluster, directory: string): Promise<ApiServerProcess> {
    const authority = new Authority();
    const { certificateFile, keyFile } = authority.issue({
      commonName: 'kube-apiserver',
      alternativeNames: ['IP:127.0.0.1'],
    });
    const tls = ['--tls-cert-file', certificateFile, '--tls-key-file', keyFile];
    const made = ['--cluster', `${cluster.services},${cluster.endpoints},${NODES}`];
    const kinds = ['--kinds', cluster.kinds];
    const child = spawn(process.execPath, [SCRIPT, ...tls, ...made, ...kinds], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { url, control } = JSON.parse(line) as { readonly url: string; readonly control: string };
    const kubeconfig = join(directory, 'kubeconfig');
    writeFileSync(kubeconfig, kubeconfigText(url, authority.own.certificateFile));
    return new ApiServerProcess(child, authority, control, kubeconfig);
  }

  async put(...objects: readonly ApiObject[]): Promise<number> {
    return Number(await this.ask('put/timed', objects));
  }

  async churn({ services, endpoints }: Cluster, perSecond: number, seconds: number): Promise<void> {
    await this.ask('churn', { perSecond, seconds, services, endpoints });
  }

  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.stdin?.end();
    await ended;
    this.authority.remove();
  }

  /** Without a time limit, as a churn is answered when it is over, and on a connection of its own. */
  private ask(command: string, body: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const outgoing = request(`${this.control}/${command}`, { method: 'POST', agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text));
          else reject(new Error(`API server: ${command}: ${text}`));
        });
      });
      outgoing.on('error', reject);
      outgoing.end(JSON.stringify(body));
    });
  }
}

export function kubeconfigText(server: string, ca: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [{ name: 'bench', cluster: { server, 'certificate-authority': ca } }],
    users: [{ name: 'bench', user: { token: TOKEN } }],
  });
}
