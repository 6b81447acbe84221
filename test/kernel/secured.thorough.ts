// The metrics address as its clients have it where flags secure it: the shipped program, curl, and Prometheus as docs/secured.md sets it up.
// needs: curl
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import t, { type Test } from 'tap';
import { Authority, type Issued } from '../support/certificates.js';
import { projectFile } from '../support/lab/agent.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { dualStack, IPV4 } from '../support/lab/packet-table.js';
import { Prometheus, prometheusProgram } from '../support/lab/prometheus.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const NODE = ADDRESSES.node.IPv4;
const TARGET = `${NODE}:10249`;
const FROM = 'remote-node';

/** Why there can be no Prometheus; false: there can. */
const withoutPrometheus = ((): string | false => {
  try {
    prometheusProgram();
    return false;
  } catch (error) {
    return `no Debian package prometheus: ${String(error)}`;
  }
})();

const nodes = new Authority('nodes');
const people = new Authority('people');
const strangers = new Authority('strangers');
t.teardown(() => {
  for (const authority of [nodes, people, strangers]) authority.remove();
});
const served = nodes.issue({ commonName: 'node-1', alternativeNames: [`IP:${NODE}`] });
const scraper = people.issue({ commonName: 'prometheus/O=scrapers', use: 'client' });

const FLAGS = [
  ...['--tls-cert-file', served.certificateFile, '--tls-private-key-file', served.keyFile],
  ...['--client-ca-file', people.own.certificateFile, '--authentication-token-webhook'],
  ...['--authorization-mode', 'Webhook', '--anonymous-auth=false'],
];

interface World {
  readonly lab: Lab;
  readonly plane: ControlPlane;
  readonly proxy: Proxy;
}

async function world(t: Test): Promise<World> {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const plane = await ControlPlane.start(t, lab);
  await plane.review({
    users: { 'a-token': { username: 'monitoring', groups: ['scrapers'] } },
    rules: [{ who: 'scrapers', nonResourceURLs: ['/metrics', '/metrics/slis'], verbs: ['get'] }],
  });
  const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });
  const config = { metricsBindAddress: '0.0.0.0:10249' };
  return { lab, plane, proxy: await Proxy.start(t, lab, { cluster: plane, flags: FLAGS, config, objects }) };
}

const { lab, plane, proxy } = await world(t);

/** Status and body of what curl is answered; `exit` and a number where there is no answer. */
async function curl(url: string, ...options: readonly string[]): Promise<string> {
  const usual = ['-s', '-m', '60', '--path-as-is', '-w', '\n%{http_code}'];
  const { status, stdout } = await lab.run(FROM, ['curl', ...usual, ...options, url]);
  const end = stdout.lastIndexOf('\n');
  return status === 0 ? `${stdout.slice(end + 1)} ${stdout.slice(0, end)}` : `exit ${String(status)}`;
}

const trusting = (path: string, ...options: readonly string[]): Promise<string> =>
  curl(`https://${TARGET}${path}`, '--cacert', nodes.own.certificateFile, ...options);
const bearer = (token: string): string[] => ['-H', `Authorization: Bearer ${token}`];
const by = ({ certificateFile, keyFile }: Issued): string[] => ['--cert', certificateFile, '--key', keyFile];

t.test('curl reads secured pages with certificates and tokens', async (t) => {
  for (const who of [bearer('a-token'), by(scraper)]) {
    t.match(await trusting('/metrics', ...who), /^200 [^]*^kubeproxy_sync_proxy_rules_duration_seconds_count{/m);
    t.match(await trusting('/metrics/slis', ...who), /^200 /);
    for (const path of ['/configz', '/debug/pprof/', '/flagz', '/metrics/../configz'])
      t.match(await trusting(path, ...who), /^403 Forbidden /, path);
  }
  t.match(await trusting('/configz', ...by(scraper)), /user="prometheus", verb=get, path="\/configz"/);
  for (const who of [[], bearer('another-token'), by(strangers.issue({ commonName: 'prometheus/O=scrapers' }))])
    t.match(await trusting('/metrics', ...who), /^401 Unauthorized: /);
  t.equal(
    await curl(`https://${TARGET}/metrics`, ...bearer('a-token')),
    'exit 60',
    'no other authority vouches for it',
  );
  t.match(await curl(`http://${TARGET}/metrics`, ...bearer('a-token')), /^exit /, 'there is no other way');
  t.match(await curl(`http://${NODE}:10256/healthz`), /^200 /, 'health is open');
});

/** The setups of the documentation, in its order, with the files and the address of this test. */
function documented(token: string): readonly object[] {
  const text = readFileSync(projectFile('docs/secured.md'), 'utf8');
  const blocks = [...text.matchAll(/^ {4}scrape_configs:\n(?: {5,}.*\n)+/gm)].map(([block]) => block);
  const files: Readonly<Record<string, string>> = {
    '/var/run/secrets/kubernetes.io/serviceaccount/token': token,
    '/etc/prometheus/nodes-ca.crt': nodes.own.certificateFile,
    '/etc/prometheus/client.crt': scraper.certificateFile,
    '/etc/prometheus/client.key': scraper.keyFile,
    'node-1.example:10249': TARGET,
  };
  return blocks.flatMap((block) => {
    const here = Object.entries(files).reduce((changed, [there, here]) => changed.replaceAll(there, here), block);
    return (load(here) as { readonly scrape_configs: readonly object[] }).scrape_configs;
  });
}

t.test('Prometheus scrapes secured metrics', { skip: withoutPrometheus }, async (t) => {
  const token = join(t.testdir({}), 'token');
  writeFileSync(token, 'a-token');
  const jobs = documented(token);
  t.equal(jobs.length, 2);
  const [byToken = {}, byCertificate = {}] = jobs;
  const prometheus = Prometheus.start(t, lab, FROM, [
    { ...byToken, job_name: 'token' },
    { ...byCertificate, job_name: 'certificate' },
    { ...byToken, job_name: 'forbidden', metrics_path: '/configz' },
    { ...byToken, job_name: 'unknown', authorization: { credentials: 'another-token' } },
  ]);
  for (const job of ['token', 'certificate']) {
    await eventually(`${job} is up`, async () => (await prometheus.query(`up{job="${job}"} == 1`))[0] ?? null);
    const series = await eventually('metrics', async () => {
      const found = await prometheus.query(`{__name__=~"kubeproxy_.+", job="${job}"}`);
      return found.length > 0 ? found : null;
    });
    t.ok(series.some(({ metric }) => metric['__name__'] === 'kubeproxy_sync_proxy_rules_duration_seconds_count'));
  }
  for (const [job, error] of [
    ['forbidden', 'server returned HTTP status 403 Forbidden'],
    ['unknown', 'server returned HTTP status 401 Unauthorized'],
  ] as const) {
    await eventually(`${job} is down`, async () => (await prometheus.query(`up{job="${job}"} == 0`))[0] ?? null);
    t.equal((await prometheus.errors()).get(job), error);
  }
});

t.test('secured pages answer while the API server is away', async (t) => {
  await plane.down();
  for (const who of [bearer('a-token'), by(scraper)]) t.match(await trusting('/metrics', ...who), /^200 /);
  t.match(await trusting('/metrics', ...bearer('a-new-token')), /^503 Service Unavailable: no TokenReview /);
  t.match(await trusting('/statusz', ...by(scraper)), /^503 Service Unavailable: no SubjectAccessReview /);
  const to = endpoint(IPV4.clusterIP(41), 80);
  t.match(await lab.request({ from: 'pod-c', to }), { name: 'pod-a' }, 'forwarding knows nothing of it');
  await plane.up();
  t.equal(await proxy.stop(), 0);
});
