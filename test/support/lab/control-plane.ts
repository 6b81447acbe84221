import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ReviewRules } from '../api-server/control.js';
import type { FaultRule } from '../api-server/faults.js';
import type { SigningPolicy } from '../api-server/signing.js';
import { Authority, type Issued } from '../certificates.js';
import type { Lab } from './lab.js';
import type { Manifest } from './objects.js';
import type { Cluster, ProxyScope } from './proxy.js';

export interface ControlPlaneOptions {
  /** Flags of the API server. */
  readonly flags?: readonly string[];
  /** How the process proves who it is: by a service account's token, as kubeadm has it, by a certificate, or by one that it has to ask for. */
  readonly identity?: 'token' | 'certificate' | 'bootstrap';
  /** Fields of clientConnection. */
  readonly clientConnection?: Readonly<Record<string, unknown>>;
}

/** What the API server tells about itself. */
export interface ControlPlaneState {
  readonly version: number;
  /** Numbers of requests by `operation resource`, as `watch nodes`. */
  readonly requests: Readonly<Record<string, number>>;
  /** Refused for want of a rule, as `get /pods`. */
  readonly forbidden: readonly string[];
  readonly accepts: readonly string[];
  readonly openConnections: number;
  readonly watches: number;
  /** As they were posted. */
  readonly events: readonly PostedEvent[];
  /** Numbers of the clients' certificates, in the order in which they came. */
  readonly serials: readonly string[];
  /** Numbers of TokenReviews and SubjectAccessReviews. */
  readonly reviews: Readonly<Record<string, number>>;
  readonly signingRequests: readonly { readonly metadata: { readonly name: string } }[];
}

export interface PostedEvent {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid?: string };
}

const SCRIPT = fileURLToPath(new URL('../api-server/main.js', import.meta.url));
const PORT = 6443;
/** Where the node reaches it. */
export const SERVER_URL = `https://127.0.0.1:${PORT}`;

/** The test API server as a process in the node's namespace, over TLS, and beside it the files that a kubeadm DaemonSet mounts for kube-proxy. */
export class ControlPlane implements Cluster {
  readonly #lab: Lab;
  readonly #folder: string;
  readonly #options: ControlPlaneOptions;
  readonly #certificate: Issued;
  readonly #authority: Authority;
  readonly #objects = new Map<string, string>();
  #token = 'first-token';
  #process: ChildProcess | null = null;
  #errors = '';

  private constructor(lab: Lab, folder: string, authority: Authority, options: ControlPlaneOptions) {
    this.#lab = lab;
    this.#folder = folder;
    this.#options = options;
    this.#authority = authority;
    this.#certificate = authority.issue({ commonName: 'kube-apiserver', alternativeNames: ['IP:127.0.0.1'] });
  }

  static async start(t: ProxyScope, lab: Lab, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const folder = await mkdtemp(join(tmpdir(), 'lab-api-'));
    const authority = new Authority();
    const plane = new ControlPlane(lab, folder, authority, options);
    t.teardown(async () => {
      await plane.kill();
      authority.remove();
      await rm(folder, { recursive: true });
      if (!t.passing()) t.comment(plane.#errors);
    });
    await mkdir(plane.account);
    await writeFile(join(plane.account, 'ca.crt'), authority.own.certificate);
    await writeFile(join(plane.account, 'token'), plane.#token);
    await writeFile(
      options.identity === 'bootstrap' ? plane.bootstrapKubeconfig : plane.kubeconfig,
      plane.#kubeconfigText(),
    );
    await plane.launch();
    return plane;
  }

  get config(): Readonly<Record<string, unknown>> {
    return { clientConnection: { kubeconfig: this.kubeconfig, ...this.#options.clientConnection } };
  }

  /** Writes what differs and deletes what is gone, as far as the server runs; one that is started later begins with everything. */
  async replace(objects: readonly Manifest[]): Promise<void> {
    const wanted = new Map(objects.map((object) => [nameOf(object), JSON.stringify(object)]));
    const deleted = [...this.#objects].filter(([name]) => !wanted.has(name)).map(([, text]) => text);
    const put = [...wanted].filter(([name, text]) => this.#objects.get(name) !== text).map(([, text]) => text);
    this.#objects.clear();
    for (const [name, text] of wanted) this.#objects.set(name, text);
    if (this.#process === null) return;
    if (deleted.length > 0) await this.#control('delete', `[${deleted.join()}]`);
    if (put.length > 0) await this.#control('put', `[${put.join()}]`);
  }

  /** Writes single objects, past what `replace` knows. */
  async put(...objects: readonly Manifest[]): Promise<void> {
    for (const object of objects) this.#objects.set(nameOf(object), JSON.stringify(object));
    await this.#control('put', JSON.stringify(objects));
  }

  /** Every connection breaks and nobody is answered until `up`; what is written meanwhile counts. */
  async down(): Promise<void> {
    await this.#control('down');
  }

  async up(): Promise<void> {
    await this.#control('up');
  }

  /** Ends the process: objects keep their content and lose their versions, as after a restore from a backup. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  /** The process hears and says nothing while it is frozen; the kernel still accepts connections for it. */
  freeze(frozen: boolean): void {
    this.#process?.kill(frozen ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Starts the process with all objects and waits until it listens. */
  async launch(): Promise<void> {
    const objects = join(this.#folder, 'objects.json');
    await rm(this.#socket, { force: true });
    await writeFile(objects, `[${[...this.#objects.values()].join()}]`);
    const { certificateFile, keyFile } = this.#certificate;
    const tls = ['--tls-cert-file', certificateFile, '--tls-key-file', keyFile];
    const clients = ['--client-ca-file', this.#authority.own.certificateFile, '--token', this.#token];
    const signer = [
      '--signer-cert-file',
      this.#authority.own.certificateFile,
      '--signer-key-file',
      this.#authority.own.keyFile,
    ];
    const rest = ['--port', String(PORT), '--control', this.#socket, '--objects', objects];
    const flags = [...tls, ...clients, ...signer, ...rest, ...(this.#options.flags ?? [])];
    const child = this.#lab.spawn('node', [process.execPath, SCRIPT, ...flags]);
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.#process = child;
    const [line] = (await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'close').then(() => ['']),
    ])) as [string];
    if (line === '') throw new Error(`the API server has ended: ${this.#errors}`);
  }

  async fault(rule: FaultRule): Promise<void> {
    await this.#control('fault', JSON.stringify(rule));
  }

  async clearFaults(): Promise<void> {
    await this.#control('faults/clear');
  }

  /** Does it to every open watch. */
  async watches(what: 'end' | 'reset' | 'stall'): Promise<void> {
    await this.#control('watches', JSON.stringify(what));
  }

  /** Forgets the changes so far: who was not there for them has to read everything anew. */
  async compact(): Promise<void> {
    await this.#control('compact');
  }

  /** From now on only another token counts. The process finds it in its file. */
  async renewToken(): Promise<void> {
    this.#token = `token-after-${this.#token}`;
    await writeFile(join(this.account, 'token'), this.#token);
    await this.#control('tokens', JSON.stringify([this.#token]));
  }

  /** From now on requests for certificates, those that wait too, are answered so. */
  async sign(how: { readonly policy: SigningPolicy; readonly seconds?: number }): Promise<void> {
    await this.#control('signing', JSON.stringify(how));
  }

  /** From now on reviews are answered by these. */
  async review(rules: ReviewRules): Promise<void> {
    await this.#control('reviews', JSON.stringify(rules));
  }

  async state(): Promise<ControlPlaneState> {
    return JSON.parse(await this.#control('state')) as ControlPlaneState;
  }

  /** The folder that a pod of the service account gets to see: the authority's certificate and a token. */
  get account(): string {
    return join(this.#folder, 'serviceaccount');
  }

  get kubeconfig(): string {
    return join(this.#folder, 'kubeconfig.conf');
  }

  /** With `bootstrap` there is this one alone at the start. */
  get bootstrapKubeconfig(): string {
    return join(this.#folder, 'bootstrap.conf');
  }

  /** Where the process may keep its certificates. */
  get certificates(): string {
    return join(this.#folder, 'pki');
  }

  get #socket(): string {
    return join(this.#folder, 'control');
  }

  #kubeconfigText(): string {
    const client =
      this.#options.identity === 'certificate' ? this.#authority.issue({ commonName: 'kube-proxy' }) : null;
    const user =
      client === null
        ? [`    tokenFile: ${join(this.account, 'token')}`]
        : [`    client-certificate: ${client.certificateFile}`, `    client-key: ${client.keyFile}`];
    return [
      'apiVersion: v1',
      'kind: Config',
      'clusters:',
      '- cluster:',
      `    certificate-authority: ${join(this.account, 'ca.crt')}`,
      `    server: ${SERVER_URL}`,
      '  name: default',
      'contexts:',
      '- context:',
      '    cluster: default',
      '    namespace: default',
      '    user: default',
      '  name: default',
      'current-context: default',
      'users:',
      '- name: default',
      '  user:',
      ...user,
      '',
    ].join('\n');
  }

  #control(command: string, body = ''): Promise<string> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ socketPath: this.#socket, path: `/${command}`, method: 'POST' }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`API server: ${command}: ${text}`));
        });
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }
}

function nameOf(object: Manifest): string {
  const { namespace = '', name = '' } = object['metadata'] as { readonly namespace?: string; readonly name?: string };
  return `${object.kind} ${namespace}/${name}`;
}
