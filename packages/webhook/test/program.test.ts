// The program beside an API server, with the rights of its ClusterRole: what its informers tell, with and without that server.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { kubeconfigText } from '../../../test/sources/kubernetes/connect.js';
import { nodeObject, serviceObject } from '../../../test/support/api-objects.js';
import type { PolicyRule } from '../../../test/support/api-server/rbac.js';
import { ApiServer } from '../../../test/support/api-server/server.js';
import { Authority, type Issued } from '../../../test/support/certificates.js';
import { build, items } from '../../../test/support/deploy/kustomize.js';
import { ask as askPlainly } from '../../../test/support/http.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import { eventually } from '../../../test/support/lab/lab.js';
import { PROGRAM } from '../../../test/support/program.js';
import { Client } from './client.js';
import { loadBalancer, external, recorded } from './recorded.js';

const authority = new Authority();
const folder = mkdtempSync(join(tmpdir(), 'pointsman-webhook-'));
t.teardown(() => {
  authority.remove();
  rmSync(folder, { recursive: true, force: true });
});
const issue = (): Issued =>
  authority.issue({ commonName: 'webhook', alternativeNames: ['DNS:localhost', 'IP:127.0.0.1'] });

/** The program, and what it says. */
class Program {
  readonly process: ChildProcess;
  private text = '';

  constructor(t: Test, flags: readonly string[]) {
    this.process = spawn(PROGRAM, ['webhook', '--listen=127.0.0.1:0', '--health-listen=127.0.0.1:0', ...flags]);
    this.process.stderr?.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    t.teardown(() => this.process.kill('SIGKILL'));
  }

  get reported(): string {
    return this.text;
  }

  async ports(): Promise<readonly [reviews: number, probes: number]> {
    const found = await eventually('it listens', () => Promise.resolve(/port=(\d+) probes=(\d+)/.exec(this.text)));
    return [Number(found[1]), Number(found[2])];
  }

  async end(): Promise<number | null> {
    this.process.kill('SIGTERM');
    return await eventually('its end', () => Promise.resolve(this.process.exitCode));
  }
}

t.test('pointsman webhook runs as a program with the permissions of its manifests', async (t) => {
  const rules = items(
    build(projectFile('deploy/components/admission')).find(({ kind }) => kind === 'ClusterRole')?.['rules'],
  ) as unknown as readonly PolicyRule[];
  const served = issue();
  const server = new ApiServer({
    tls: { key: served.key, cert: served.certificate, clientCa: null },
    address: '127.0.0.1',
    tokens: ['good'],
    rules,
    without: ['servicecidrs'],
  });
  server.put(
    serviceObject(
      'ingress',
      { externalIPs: ['198.51.100.1'] },
      { metadata: { name: 'ingress', namespace: 'default', creationTimestamp: '2020-01-01T00:00:00Z' } },
    ),
    nodeObject('node-1', { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } }),
  );
  await server.start();
  t.teardown(() => server.stop());
  const kubeconfig = join(folder, 'kubeconfig');
  const certificateAuthority = Buffer.from(authority.own.certificate).toString('base64');
  const cluster = { server: server.url, 'certificate-authority-data': certificateAuthority };
  writeFileSync(kubeconfig, kubeconfigText({ cluster, user: { token: 'good' } }));
  const { certificateFile, keyFile } = issue();
  const pair = [
    `--tls-cert-file=${certificateFile}`,
    `--tls-private-key-file=${keyFile}`,
    `--client-ca-file=${authority.own.certificateFile}`,
  ];
  const program = new Program(t, [...pair, `--kubeconfig=${kubeconfig}`, '--service-cluster-ip-range=10.96.0.0/16']);
  t.teardown(() => {
    if (!t.passing()) t.comment(program.reported);
  });
  const [port, probes] = await program.ports();
  const client = new Client(t, authority, port, authority.issue({ commonName: 'kube-apiserver', use: 'client' }));
  const ready = (): Promise<true> =>
    eventually('ready', async () => (await askPlainly('127.0.0.1', probes, '/readyz')).status === 200 || null);
  await ready();
  const message = async (address: string): Promise<string> => {
    const { status } = await client.review(recorded('create', { object: external(address) }));
    return JSON.stringify(status ?? '');
  };
  t.match(await message('198.51.100.1'), /default\/ingress/);
  t.match(await message('192.0.2.1'), /node-1/);
  t.match(await message('10.96.3.3'), /10\.96\.0\.0\/16/);
  server.put(serviceObject('other', { clusterIP: '10.96.0.11', externalIPs: ['198.51.100.2'] }));
  await eventually(
    'a Service that came',
    async () => (await message('198.51.100.2')).includes('default/other') || null,
  );
  await server.stop();
  t.match(await message('198.51.100.2'), /default\/other/, 'without its API server it judges by what it knows');
  server.store.delete(
    { name: 'services', kind: 'Service', apiVersion: 'v1', namespaced: true },
    { namespace: 'default', name: 'other' },
  );
  await server.start();
  await eventually('a Service that went meanwhile', async () => (await message('198.51.100.2')) === '""' || null);
  const status = recorded('status', { object: loadBalancer('127.0.0.1') });
  t.match(await client.review(status), { allowed: false });
  await eventually('an event', () => Promise.resolve(server.events.length === 1 || null));
  t.match(server.events[0], { reportingController: 'pointsman-webhook', reason: 'StatusRefused' });
  t.same(server.forbidden, [], 'nothing that its ClusterRole does not grant');
  t.equal(await program.end(), 0);
});
