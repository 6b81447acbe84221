// Who asked for what, and what became of it: Events as a policy says, in a file.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { Audit, type AuditedExchange } from '../src/audit.js';
import { AuditPolicy } from '../src/audit-policy.js';
import { connectBy } from '../../../test/sources/kubernetes/connect.js';
import { ApiServer } from '../../../test/support/api-server/server.js';
import { Authority } from '../../../test/support/certificates.js';
import { folder, open, scene, type Scene } from './scene.js';

const authority = new Authority();
t.teardown(() => {
  authority.remove();
});
const served = authority.issue({ commonName: 'served', alternativeNames: ['DNS:localhost'] });
const TLS = [`--tls-cert-file=${served.certificateFile}`, `--tls-private-key-file=${served.keyFile}`];
const TRUSTED = ['--cacert', authority.own.certificateFile];
const HEAD = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy' };
const ALL = { rules: [{ level: 'Metadata' }] };

type Event = Readonly<Record<string, unknown>>;

interface World extends Scene {
  readonly server: ApiServer;
  /** The directory of the file of Events. */
  readonly logs: string;
  readonly policy: (content: object) => void;
  /** Those written since the last time, when there are so many. */
  readonly events: (count: number) => Promise<readonly Event[]>;
  readonly by: (token: string) => string[];
}

/** A server that knows `reader`, who may read metrics, behind access control that audits by a policy. */
async function world(t: Test, content: object, more: readonly string[] = []): Promise<World> {
  const directory = folder(t);
  const [policyFile, log] = [join(directory, 'policy.yaml'), join(directory, 'logs', 'audit.log')];
  const policy = (changed: object): void => {
    writeFileSync(policyFile, JSON.stringify({ ...HEAD, ...changed }));
  };
  policy(content);
  const server = new ApiServer();
  await server.start();
  t.teardown(() => server.stop());
  const { users, rules } = server.reviews;
  users.set('reader', { username: 'prometheus', uid: 'u1', groups: ['scrapers'], extra: { 'example.org/a': ['b'] } });
  rules.push({ who: 'scrapers', nonResourceURLs: ['/metrics', '/metrics/*', '/configz'], verbs: ['get'] });
  const api = await connectBy(t, { master: server.url });
  const flags = [`--audit-policy-file=${policyFile}`, `--audit-log-path=${log}`, ...more];
  const reviews = ['--authentication-token-webhook', '--authorization-mode=Webhook', '--anonymous-auth=false'];
  const made = await scene(t, [...TLS, ...reviews, ...flags], { api: () => api });
  let read = 0;
  const events = async (count: number): Promise<readonly Event[]> => {
    for (;;) {
      const lines = readFileSync(log, 'utf8').split('\n').slice(read, -1);
      if (lines.length < count) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      read += lines.length;
      return lines.map((line) => JSON.parse(line) as Event);
    }
  };
  return Object.assign(made, {
    logs: dirname(log),
    server,
    policy,
    events,
    by: (token: string) => [...TRUSTED, '-H', `Authorization: Bearer ${token}`],
  });
}

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

t.test('the audit log has an Event for each stage, in the format of the API server', async (t) => {
  const { ask, events, by, received } = await world(t, ALL);
  const agent = ['-A', 'curl/test', '-H', 'Audit-ID: mine', '-H', 'X-Forwarded-For: 192.0.2.1'];
  const { body } = await ask('/metrics?a=b', ...by('reader'), ...agent, '-i');
  const [atWebhook, complete] = await events(2);
  const auditID = /^Audit-ID: (\S+)/m.exec(body)?.[1];
  t.match(auditID, /^[0-9a-f-]{36}$/, 'ours');
  const common = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID,
    requestURI: '/metrics?a=b',
    verb: 'get',
    user: {
      username: 'prometheus',
      uid: 'u1',
      groups: ['scrapers', 'system:authenticated'],
      extra: { 'example.org/a': ['b'] },
    },
    sourceIPs: ['127.0.0.1'],
    userAgent: 'curl/test',
  };
  const times = { requestReceivedTimestamp: MICRO_TIME, stageTimestamp: MICRO_TIME };
  t.match(atWebhook, { ...common, ...times, stage: 'RequestReceived' });
  t.notOk(atWebhook?.['annotations']);
  t.notOk(atWebhook?.['responseStatus']);
  t.match(complete, { ...common, ...times, stage: 'ResponseComplete', responseStatus: { metadata: {}, code: 200 } });
  t.match(complete?.['annotations'], {
    'authorization.k8s.io/decision': 'allow',
    'authorization.k8s.io/reason': String,
  });
  const written = (): number => received.filter((each) => each === 'audited written').length;
  // Counted when they are in the file.
  while (written() < 2) await new Promise((resolve) => setImmediate(resolve));
  t.equal(written(), 2);
});

t.test('the audit log has refused requests with the reason', async (t) => {
  const { ask, events, by, server } = await world(t, { ...ALL, omitStages: ['RequestReceived'] });
  await ask('/debug/pprof/', ...by('reader'));
  t.match(await events(1), [
    {
      stage: 'ResponseComplete',
      responseStatus: { status: 'Failure', reason: 'Forbidden', code: 403, message: /path="\/debug\/pprof\/"/ },
      annotations: { 'authorization.k8s.io/decision': 'forbid', 'pointsman/reason': /^Forbidden/ },
    },
  ]);
  await ask('/metrics/%2e%2e/configz', ...by('reader'));
  t.match(await events(1), [
    { requestURI: '/metrics/%2e%2e/configz', annotations: { 'authorization.k8s.io/reason': /canonical form/ } },
  ]);
  await ask('/metrics', ...by('unknown'));
  const [unknown] = await events(1);
  t.match(unknown, { stage: 'ResponseStarted', responseStatus: { reason: 'Unauthorized', code: 401 } });
  t.same(unknown?.['user'], {});
  await ask('/metrics', ...TRUSTED);
  t.match(await events(1), [{ annotations: { 'pointsman/reason': /neither a valid client certificate nor/ } }]);
  await server.stop();
  await ask('/metrics', ...by('reader'));
  const [silent] = await events(1);
  t.match(silent, { responseStatus: { reason: 'ServiceUnavailable', code: 503 } });
  t.notOk(Object.keys(silent?.['annotations'] ?? {}).includes('authorization.k8s.io/decision'));
});

t.test('the audit log cuts a request URI at 1,024 bytes', async (t) => {
  const { ask, events, by } = await world(t, ALL);
  await ask(`/metrics?${'a'.repeat(1500)}`, ...by('reader'));
  for (const event of await events(2)) {
    const uri = String(event['requestURI']);
    t.ok(uri.startsWith('/metrics?aaa') && uri.length > 1000 && Buffer.byteLength(uri) <= 1024, uri);
  }
});

t.test('audit modes decide whether a request whose Event cannot be written is served', async (t) => {
  for (const [mode, status] of [
    ['batch', 200],
    ['blocking', 200],
    ['blocking-strict', 500],
  ] as const) {
    const { ask, events, by, logs, received, policy, look } = await world(t, ALL, [`--audit-log-mode=${mode}`]);
    t.match(await ask('/metrics', ...by('reader')), { status: 200 }, `${mode}: written`);
    await events(2);
    renameSync(logs, `${logs}-moved`);
    writeFileSync(logs, 'no directory');
    const before = received.filter((each) => each === 'audited dropped').length;
    const answer = await ask('/metrics', ...by('reader'));
    t.equal(answer.status, status, `${mode}: lost`);
    if (status === 500) t.match(answer.body, /cannot be written to the audit log/);
    if (mode !== 'batch')
      t.ok(
        received.filter((each) => each === 'audited dropped').length > before,
        `${mode}: answered when it was known`,
      );
    t.match(await ask('/metrics', ...by('unknown')), { status: 401 }, `${mode}: only what is known to be received`);
    policy({ ...ALL, omitStages: ['RequestReceived'] });
    await look();
    t.match(await ask('/metrics', ...by('reader')), { status: 200 }, `${mode}: the stage is omitted`);
  }
});

t.test('audit lines are attributed to authenticated users, and all others to client addresses', async (t) => {
  const clients: (string | null | undefined)[] = [];
  const audit = new Audit({
    mode: 'batch',
    policy: { current: AuditPolicy.read(JSON.stringify({ ...HEAD, ...ALL }), () => undefined) },
    file: { write: (_, client) => clients.push(client) > 0, close: () => Promise.resolve(), fault: null },
    now: Date.now,
  });
  const begin = (remoteAddress: string): AuditedExchange => {
    const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/' });
    Object.defineProperty(request.socket, 'remoteAddress', { value: remoteAddress });
    return audit.begin(request, new ServerResponse(request));
  };
  await begin('192.0.2.1').unidentified(401, '');
  await begin('::ffff:192.0.2.1').unidentified(401, '');
  await begin('2001:db8::1').unidentified(401, '');
  await begin('2001:db8::ffff:1').unidentified(401, '');
  const user = { name: 'a', uid: '', groups: ['system:unauthenticated'], extra: {} };
  await begin('192.0.2.2').identified(user);
  await begin('192.0.2.2').identified({ ...user, groups: [] });
  const network = 'network 20010db800000000';
  t.same(clients, [...Array<string>(2).fill('address 192.0.2.1'), network, network, 'address 192.0.2.2', 'user a']);
});

t.test('the audit log has a failing page as stage Panic', async (t) => {
  const made = await world(t, { ...ALL, omitStages: ['RequestReceived'] });
  made.fail = new Error('out of order');
  t.match(await made.ask('/metrics', ...made.by('reader')), { status: 500 });
  t.match(await made.events(1), [
    { stage: 'Panic', responseStatus: { reason: 'InternalError', code: 500, message: 'out of order' } },
  ]);
});

t.test('a changed audit policy is reloaded, and an invalid one is ignored', async (t) => {
  const { ask, events, by, policy, look, received, log } = await world(t, ALL);
  policy({ rules: [{ level: 'All' }] });
  await look();
  t.match(
    log.lines.at(-1),
    /--audit-policy-file.*Policy\.rules\[0\]\.level: "All": is not known|Policy\.rules\[0\]\.level/,
  );
  await ask('/metrics', ...by('reader'));
  t.equal((await events(2)).length, 2);
  policy({ rules: [{ level: 'None', nonResourceURLs: ['/metrics'] }, { level: 'Request' }] });
  await look();
  await ask('/metrics', ...by('reader'));
  await ask('/configz', ...by('reader'));
  const written = await events(2);
  t.same(
    written.map(({ requestURI }) => requestURI),
    ['/configz', '/configz'],
  );
  t.match(written[1], { level: 'Request' });
  t.same(
    received.filter((each) => each.startsWith('--')),
    ['--audit-policy-file refused', '--audit-policy-file applied'],
  );
});

t.test('every invalid audit policy is refused with file and field', async (t) => {
  const directory = folder(t);
  const policyFile = join(directory, 'policy.yaml');
  const problem = async (content: object, path = join(directory, 'audit.log')): Promise<string> => {
    writeFileSync(policyFile, JSON.stringify({ ...HEAD, ...content }));
    const opened = await open([...TLS, `--audit-policy-file=${policyFile}`, `--audit-log-path=${path}`], {});
    if ('problem' in opened) return opened.problem;
    await opened.close();
    return 'none';
  };
  t.equal(await problem(ALL), 'none');
  const rule = (more: object): object => ({ rules: [{ level: 'Metadata', ...more }] });
  const cases: readonly (readonly [content: object, field: string])[] = [
    [{ ...ALL, apiVersion: 'audit.k8s.io/v1beta1' }, '.apiVersion: '],
    [{ ...ALL, kind: 'PolicyList' }, '.kind: '],
    [{}, '.rules: is missing'],
    [rule({ level: 'metadata' }), '.rules[0].level: '],
    [rule({ omitStages: ['Later'] }), '.rules[0].omitStages[0]: '],
    [rule({ nonResourceURLs: ['/a*b'] }), '.rules[0].nonResourceURLs[0]: '],
    [rule({ nonResourceURLs: ['/a'], namespaces: ['b'] }), '.rules[0].namespaces: '],
    [rule({ paths: ['/a'] }), '.rules[0].paths: is an unknown field'],
  ];
  for (const [content, field] of cases) {
    const text = await problem(content);
    t.ok(text.startsWith(`--audit-policy-file: Policy${field}`), `${field} ${text}`);
  }
  mkdirSync(join(directory, 'a'));
  t.match(await problem(ALL, join(directory, 'a')), /^--audit-log-path: \S*\/a: cannot be written to: is no file/);
  t.match(await problem(ALL, join(policyFile, 'a')), /^--audit-log-path: .*cannot be written to/);
});

t.test('the first matching rule of an audit policy decides', (t) => {
  const warnings: string[] = [];
  const policy = AuditPolicy.read(
    JSON.stringify({
      ...HEAD,
      omitStages: ['RequestReceived'],
      rules: [
        { level: 'RequestResponse', resources: [{ group: '', resources: ['pods'] }] },
        { level: 'Request', namespaces: [''] },
        { level: 'None', users: ['quiet'], nonResourceURLs: ['/metrics*'] },
        { level: 'Request', userGroups: ['masters'], omitStages: ['Panic'], omitManagedFields: true },
        { level: 'None', verbs: ['put', 'delete'] },
        { level: 'Metadata', nonResourceURLs: ['/debug/*', '/configz'] },
      ],
    }),
    (problem) => warnings.push(problem),
  );
  const judge = (path: string, name = 'somebody', verb = 'get', groups: readonly string[] = []): string => {
    const user = name === '' ? null : { name, uid: '', groups, extra: {} };
    const verdict = policy.judge({ user, verb, path });
    return verdict === null ? 'nothing' : [verdict.level, ...verdict.omitted].join(' ');
  };
  t.equal(judge('/metrics/slis', 'quiet'), 'nothing');
  t.equal(judge('/configz', 'quiet'), 'Metadata RequestReceived');
  t.equal(judge('/metrics', 'a', 'get', ['x', 'masters']), 'Request RequestReceived Panic');
  t.equal(judge('/debug/flags/v', 'a', 'put'), 'nothing');
  t.equal(judge('/debug/', ''), 'Metadata RequestReceived');
  t.equal(judge('/debug'), 'nothing');
  t.equal(judge('/configz/'), 'nothing');
  t.same(warnings, [
    'Policy.rules: 2 with resources or namespaces match nothing, as there are only paths',
    'Policy.omitManagedFields: has no effect, as no bodies are recorded',
  ]);
  t.end();
});
