import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { readSelection } from '../../../src/sources/kubernetes/auth/access.js';
import { connectCertified } from '../../../src/sources/kubernetes/certificate/connect.js';
import type { KeeperParts } from '../../../src/sources/kubernetes/certificate/keeper.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import type { ApiServerOptions } from '../../support/api-server/options.js';
import { resourceOfKind } from '../../support/api-server/resources.js';
import { ApiServer } from '../../support/api-server/server.js';
import type { SigningPolicy } from '../../support/api-server/signing.js';
import type { Authority } from '../../support/certificates.js';
import { RecordingLog } from '../../support/recording-log.js';
import { connectBy, kubeconfigText, scratch } from './connect.js';
import { until } from './live-world.js';

/** Waits a hundredth of the time. */
const QUICK: Clock = {
  now: () => systemClock.now() * 100,
  callAt: (time, callback) => systemClock.callAt(time / 100, callback),
};

interface Request {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly request: string; readonly signerName: string; readonly usages: readonly string[] };
}

/** An API server that knows certificates of one authority, and may sign them; and a node that has none. */
export class CertificateWorld {
  readonly server: ApiServer;
  readonly directory: string;
  readonly kubeconfig: string;
  readonly bootstrap: string;
  readonly link: string;
  readonly pending: string;
  readonly log = new RecordingLog();
  /** What the observer hears. */
  readonly received: string[] = [];
  lacks: string | null = null;

  private constructor(
    private readonly t: Test,
    private readonly authority: Authority,
    options: Partial<ApiServerOptions>,
  ) {
    this.directory = scratch(t);
    this.kubeconfig = join(this.directory, 'kubeconfig');
    this.bootstrap = join(this.directory, 'bootstrap');
    this.link = join(this.directory, 'pki', 'kube-proxy-client-current.pem');
    this.pending = join(this.directory, 'pki', 'kube-proxy-client.key.tmp');
    const served = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
    const tls = { key: served.key, cert: served.certificate, clientCa: authority.own.certificate };
    this.server = new ApiServer({ tls, tokens: ['bootstrap-token'], signer: authority.own, ...options });
  }

  static async start(
    t: Test,
    authority: Authority,
    policy: SigningPolicy = 'sign',
    options: Partial<ApiServerOptions> = {},
  ): Promise<CertificateWorld> {
    const world = new CertificateWorld(t, authority, options);
    world.server.signing.policy = policy;
    await world.server.start();
    t.teardown(() => world.server.stop());
    writeFileSync(world.bootstrap, kubeconfigText({ cluster: world.cluster, user: { token: 'bootstrap-token' } }));
    return world;
  }

  get cluster(): object {
    return { server: this.server.url, 'certificate-authority': this.authority.own.certificateFile };
  }

  async connect(parts: Partial<KeeperParts> = {}, config: Partial<KeeperParts['config']> = {}): Promise<ApiConnection> {
    const connection = await connectCertified({
      config: {
        bootstrapKubeconfig: this.bootstrap,
        directory: join(this.directory, 'pki'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        isRotated: false,
        ...config,
      },
      kubeconfig: this.kubeconfig,
      nodeName: 'worker-1',
      connect: (kubeconfig) => connectBy(this.t, { kubeconfig }),
      select: (kubeconfig) => readSelection(kubeconfig, false),
      clock: QUICK,
      random: () => 0.5,
      now: Date.now,
      log: this.log,
      observer: {
        certificateLacks: (why) => (this.lacks = why),
        certificateRequested: (result) => this.received.push(result),
        certificateEnds: () => undefined,
      },
      ...parts,
    });
    this.t.teardown(() => {
      connection.close();
    });
    return connection;
  }

  requests(): readonly Request[] {
    return this.server.store.list(resourceOfKind('CertificateSigningRequest')) as unknown as readonly Request[];
  }

  /** The server forgets all requests, as the real one does after an hour. */
  forget(): void {
    for (const { metadata } of this.requests())
      this.server.store.delete(resourceOfKind('CertificateSigningRequest'), { namespace: '', name: metadata.name });
  }

  posts(): number {
    return this.server.requests.filter(({ method }) => method === 'POST').length;
  }

  answer(policy: SigningPolicy): void {
    this.server.signing.policy = policy;
    this.server.signing.judge(this.server.store);
  }

  /** A request has come, and is waited for. */
  async waiting(): Promise<void> {
    await until(() => this.lacks?.includes(' waits for ') === true, 'waiting');
  }

  /** Takes back what a process does after a point in time. */
  without(...paths: readonly string[]): void {
    for (const path of paths) rmSync(path, { force: true });
  }

  reported(pattern: RegExp): number {
    return this.log.lines.filter((line) => pattern.test(line)).length;
  }
}
