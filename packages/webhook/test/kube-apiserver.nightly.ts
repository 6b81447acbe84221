// The program asked by a real kube-apiserver, by deploy/components/admission, while it is attacked.
// POINTSMAN_KUBE_APISERVER names the folder of kube-apiserver and etcd; without it this is skipped.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { kubeconfigText } from '../../../test/sources/kubernetes/connect.js';
import { serviceObject, type ApiObject } from '../../../test/support/api-objects.js';
import { Authority } from '../../../test/support/certificates.js';
import { build, fieldsOf, items, merge } from '../../../test/support/deploy/kustomize.js';
import { ask as askPlainly } from '../../../test/support/http.js';
import { KubeApiServer, TOKEN, type Answer } from '../../../test/support/kube-apiserver.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import { eventually } from '../../../test/support/lab/lab.js';
import { PROGRAM } from '../../../test/support/program.js';

const PROGRAMS = process.env['POINTSMAN_KUBE_APISERVER'] ?? '';
const SERVICES = '/api/v1/namespaces/default/services';
const DRY_RUN = '?dryRun=All';
const SLOW_BODIES = 200;

const authority = new Authority();
const folder = mkdtempSync(join(tmpdir(), 'pointsman-webhook-'));
t.teardown(() => {
  authority.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Of the component, with where the webhook is in place of its Service. */
function configuration(port: number): ApiObject {
  const found = build(projectFile('deploy/components/admission')).find(
    ({ kind }) => kind === 'ValidatingWebhookConfiguration',
  );
  const caBundle = Buffer.from(authority.own.certificate).toString('base64');
  const [webhook] = items(fieldsOf(found)['webhooks']);
  const clientConfig = { url: `https://localhost:${port}/validate`, caBundle };
  return merge(fieldsOf(found), { webhooks: [{ ...webhook, clientConfig }] });
}

/** Makes the API server show its certificate. @param user the webhook's name and port. */
function admission(user: string): string {
  const { certificateFile, keyFile } = authority.issue({ commonName: 'kube-apiserver', use: 'client' });
  const kubeConfigFile = join(folder, 'webhooks.kubeconfig');
  const shown = { 'client-certificate': certificateFile, 'client-key': keyFile };
  writeFileSync(
    kubeConfigFile,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: user, user: shown }] }),
  );
  const file = join(folder, 'admission.yaml');
  const apiVersion = 'apiserver.config.k8s.io/v1';
  const plugin = { apiVersion, kind: 'WebhookAdmissionConfiguration', kubeConfigFile };
  const plugins = [{ name: 'ValidatingAdmissionWebhook', configuration: plugin }];
  writeFileSync(file, JSON.stringify({ apiVersion, kind: 'AdmissionConfiguration', plugins }));
  return file;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function product(name: string, ports: number, addresses: number, net = '8.8'): ApiObject {
  return serviceObject(name, {
    clusterIP: undefined,
    ports: Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: index + 1, protocol: 'TCP' })),
    externalIPs: Array.from({ length: addresses }, (_, index) => `${net}.${index >> 8}.${index & 255}`),
  });
}

t.test(
  'a real API server asks the webhook',
  { skip: PROGRAMS === '' && 'POINTSMAN_KUBE_APISERVER is not set' },
  async (t) => {
    const port = await freePort();
    const server = await KubeApiServer.start({
      programs: PROGRAMS,
      directory: folder,
      authority,
      serviceRange: '10.0.0.0/16',
      nodeAddress: '192.168.0.2',
      flags: [`--admission-control-config-file=${admission(`localhost:${port}`)}`],
    });
    t.teardown(() => server.stop());
    const cluster = {
      server: server.url,
      'certificate-authority-data': Buffer.from(authority.own.certificate).toString('base64'),
    };
    const kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, kubeconfigText({ cluster, user: { token: TOKEN } }));
    const policy = join(folder, 'policy.yaml');
    writeFileSync(
      policy,
      JSON.stringify({
        apiVersion: 'admission.pointsman.io/v1alpha1',
        kind: 'ServicePolicy',
        allowedExternalIPs: [{ namespaces: ['default'], cidrs: ['192.0.2.0/24', '198.18.0.0/15'] }],
      }),
    );
    const { certificateFile, keyFile } = authority.issue({
      commonName: 'webhook',
      alternativeNames: ['DNS:localhost', 'IP:127.0.0.1'],
    });
    const program = spawn(PROGRAM, [
      ...['webhook', `--listen=127.0.0.1:${port}`, '--health-listen=127.0.0.1:0', `--kubeconfig=${kubeconfig}`],
      ...[`--tls-cert-file=${certificateFile}`, `--tls-private-key-file=${keyFile}`, `--policy=${policy}`],
      `--client-ca-file=${authority.own.certificateFile}`,
    ]);
    let reported = '';
    program.stderr.setEncoding('utf8').on('data', (chunk: string) => (reported += chunk));
    t.teardown(() => {
      program.kill('SIGKILL');
      if (!t.passing()) t.comment(reported);
    });
    const probes = await eventually('it listens', () => Promise.resolve(/probes=(\d+)/.exec(reported)?.[1] ?? null));
    await eventually(
      'ready',
      async () => (await askPlainly('127.0.0.1', Number(probes), '/readyz')).status === 200 || null,
    );
    const created = await server.ask(
      'POST',
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
      configuration(port),
    );
    t.equal(created.status, 201, created.body);

    const create = (object: ApiObject, query = ''): Promise<Answer> =>
      server.ask('POST', `${SERVICES}${query}`, object);
    const outside = (name: string, address: string): ApiObject =>
      serviceObject(name, { clusterIP: undefined, externalIPs: [address] });
    /** That it is refused by the webhook's word. If that came after the component's `timeoutSeconds`, the Service would be stored. */
    const refused = async (what: string, asked: Promise<Answer>, why: RegExp): Promise<void> => {
      const startedAt = performance.now();
      t.match(await asked, { status: 403, body: why }, what);
      const ms = Math.round(performance.now() - startedAt);
      t.comment(`${what}: ${ms} ms`);
    };
    const forbidden = (what: string): Promise<void> =>
      refused(what, create(outside('forbidden', '8.8.8.8')), /8\.8\.8\.8 is none that namespace default may have/);

    // The API server learns of its configuration in its own time.
    await eventually('asked', async () => (await create(outside('first', '8.8.8.8'), DRY_RUN)).status === 403 || null);
    await forbidden('an external IP that the policy does not grant');
    t.equal((await create(outside('granted', '192.0.2.1'))).status, 201, 'one that it grants');
    await refused('one that another Service has', create(outside('second', '192.0.2.1')), /default\/granted/);

    await refused('1,000 ports, 1,000 addresses', create(product('product', 1000, 1000)), /frontends|8\.8\./);
    const large = product('product', 4000, 8000);
    t.ok(JSON.stringify(large).length > 235_000);
    const busy = [1, 2, 3, 4].map(() => refused('a large dry run', create(large, DRY_RUN), /frontends|8\.8\./));
    await forbidden('while large ones are judged');
    await Promise.all(busy);

    t.equal((await create(product('first-of-many', 10, 900, '198.18'))).status, 201, 'as large as it may be');
    const many = product('second-of-many', 10, 900, '198.18');
    await refused('as many conflicts as there may be', create(many), /default\/first-of-many/);
    await forbidden('after that');

    const client = authority.issue({ commonName: 'another', use: 'client' });
    for (const [who, pair] of [
      ['without a certificate', {}],
      ['with one', { cert: client.certificate, key: client.key }],
    ] as const) {
      const stop = slowBodies(port, pair);
      for (let round = 0; round < 5; round++) await forbidden(`while slow bodies come ${who}`);
      stop();
    }

    const loadBalancer = serviceObject('balanced', { clusterIP: undefined, type: 'LoadBalancer' });
    t.equal((await create(loadBalancer)).status, 201);
    const status = { ...loadBalancer, status: { loadBalancer: { ingress: [{ ip: '127.0.0.1' }] } } };
    const put = server.ask('PUT', `${SERVICES}/balanced/status`, status);
    await refused('a balancer address that is loopback', put, /127\.0\.0\.1/);
    await eventually('an event', async () => {
      const { body } = await server.ask('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
      return body.includes('StatusRefused') || null;
    });

    program.kill('SIGKILL');
    t.equal(
      (await create(outside('forbidden', '8.8.8.8'))).status,
      201,
      'without an answer of the webhook a Service is stored',
    );
  },
);

/** Reviews whose bodies never end, several at once, one after the other. @returns stops them. */
function slowBodies(port: number, pair: { readonly cert?: string; readonly key?: string }): () => void {
  const agent = new Agent({ keepAlive: false, ca: authority.own.certificate, ...pair });
  let goesOn = true;
  const begin = (): void => {
    if (!goesOn) return;
    const outgoing = request({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      path: '/validate',
      method: 'POST',
      agent,
      headers: { 'Content-Type': 'application/json', 'Content-Length': 1 << 20 },
    });
    outgoing.on('response', (response) => response.resume());
    outgoing.on('error', () => undefined).on('close', begin);
    outgoing.write('{');
  };
  for (let count = 0; count < SLOW_BODIES; count++) begin();
  return () => {
    goesOn = false;
    agent.destroy();
  };
}
