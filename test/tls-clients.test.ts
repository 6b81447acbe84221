// One policy for every TLS client of the program: a server is known by its alternative names, and no environment variable turns that off.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import t from 'tap';
import { Informers } from '../packages/webhook/src/informers.js';
import { ObservedCluster } from '../packages/webhook/src/observed-cluster.js';
import { readCluster } from '../packages/check/src/cluster.js';
import { ClusterApi } from '../packages/nodes/src/cluster-api.js';
import { IssuerKeys } from '../packages/secured/src/issuer-keys.js';
import { httpGet } from '../src/sources/manifests/http-get.js';
import { connectBy, kubeconfigText } from './sources/kubernetes/connect.js';
import { AuthServer } from './support/auth-server.js';
import { Authority } from './support/certificates.js';
import { FakeClock } from './support/fake-clock.js';
import { eventually } from './support/lab/lab.js';
import { RecordingLog } from './support/recording-log.js';

const authority = new Authority();
const stranger = new Authority();
const folder = mkdtempSync(join(tmpdir(), 'pointsman-tls-'));
t.teardown(() => {
  authority.remove();
  stranger.remove();
  rmSync(folder, { recursive: true, force: true });
});

function kubeconfigFor(server: string): string {
  const file = join(folder, 'kubeconfig');
  const trust = Buffer.from(authority.own.certificate).toString('base64');
  writeFileSync(file, kubeconfigText({ cluster: { server, 'certificate-authority-data': trust } }));
  return file;
}

const TIMES = { maxBytes: 1 << 20, timeoutMs: 60_000 };

/** Each asks a server once, and settles when it has an answer or a reason why not. */
const CLIENTS: Readonly<Record<string, (server: string) => Promise<unknown>>> = {
  nodes: async (server) => (await ClusterApi.open(kubeconfigFor(server))).ask('/api', TIMES),
  'check --cluster': (server) => readCluster({ kubeconfig: kubeconfigFor(server), env: {}, take: () => undefined }),
  webhook: async (server) => {
    const log = new RecordingLog();
    const connection = await connectBy(t, { kubeconfig: kubeconfigFor(server) });
    const cluster = new ObservedCluster([], log);
    const informers = new Informers({ connection, cluster, clock: new FakeClock(), log });
    informers.start();
    await eventually('an answer, or a reason', () =>
      Promise.resolve(cluster.unread.length === 0 || log.lines.length > 0 || null),
    );
    await informers.stop();
  },
  'keys of issuers': (server) =>
    new IssuerKeys(
      { url: server, discoveryUrl: `${server}/discovery`, authority: authority.own.certificate, audiences: [] },
      new FakeClock(),
    ).current(),
  manifests: (server) =>
    httpGet(
      new URL(server),
      { headers: [], secureContext: createSecureContext({ ca: authority.own.certificate }) },
      AbortSignal.timeout(60_000),
    ),
};

t.test("every TLS client verifies the server's certificate", async (t) => {
  const good = authority.issue({ commonName: 'server', alternativeNames: ['DNS:localhost'] });
  const named = authority.issue({ commonName: 'localhost', use: 'server' });
  const foreign = stranger.issue({ commonName: 'server', alternativeNames: ['DNS:localhost'] });
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
  });
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  for (const [what, { key, certificate }, wanted] of [
    ['an alternative name', good, true],
    ['the common name alone', named, false],
    ['a certificate of a stranger', foreign, false],
  ] as const) {
    for (const [name, ask] of Object.entries(CLIENTS)) {
      const server = await AuthServer.start({ key, cert: certificate });
      server.handler = (_request, response) => response.end('{"items":[],"metadata":{}}');
      await ask(server.url('localhost')).catch(() => undefined);
      t.equal(server.seen.length > 0, wanted, `${name}: ${what}`);
      await server.stop();
    }
  }
});
