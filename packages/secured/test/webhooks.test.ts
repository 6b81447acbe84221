// An AuthorizationConfiguration: webhooks that are asked in turn, each by its kubeconfig, with conditions and what their silence means.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { connectBy, kubeconfigText } from '../../../test/sources/kubernetes/connect.js';
import { AuthServer } from '../../../test/support/auth-server.js';
import { Authority } from '../../../test/support/certificates.js';
import { folder, open, scene, type Scene } from './scene.js';

const authority = new Authority();
t.teardown(() => {
  authority.remove();
});
const served = authority.issue({ commonName: 'served', alternativeNames: ['DNS:localhost'] });
const client = authority.issue({ commonName: 'prometheus/O=scrapers', use: 'client' });
const TLS = [
  `--tls-cert-file=${served.certificateFile}`,
  `--tls-private-key-file=${served.keyFile}`,
  `--client-ca-file=${authority.own.certificateFile}`,
];
const CLIENT = ['--cacert', authority.own.certificateFile, '--cert', client.certificateFile, '--key', client.keyFile];
const HEAD = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthorizationConfiguration' };

interface Hook {
  readonly server: AuthServer;
  readonly kubeconfig: string;
  /** What it is asked. */
  readonly specs: { readonly [field: string]: unknown }[];
  status: object | null;
}

async function hook(t: Test, status: object | null, path = '/judge'): Promise<Hook> {
  const server = await AuthServer.start(null);
  t.teardown(() => server.stop());
  const kubeconfig = join(folder(t), 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText({ cluster: { server: server.url() + path } }));
  const made: Hook = { server, kubeconfig, specs: [], status };
  server.handler = (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const review = JSON.parse(body) as { readonly spec: { readonly [field: string]: unknown } };
      made.specs.push(review.spec);
      if (made.status === null) response.writeHead(500).end();
      else response.end(JSON.stringify({ ...review, status: made.status }));
    });
  };
  return made;
}

function authorizer(name: string, { kubeconfig }: Pick<Hook, 'kubeconfig'>, more: object = {}): object {
  const webhook = {
    authorizedTTL: '5m',
    unauthorizedTTL: '30s',
    timeout: '3s',
    subjectAccessReviewVersion: 'v1',
    matchConditionSubjectAccessReviewVersion: 'v1',
    failurePolicy: 'NoOpinion',
    connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: kubeconfig },
  };
  return { type: 'Webhook', name, webhook: { ...webhook, ...more } };
}

interface World extends Scene {
  readonly write: (...authorizers: readonly object[]) => void;
  readonly status: (path?: string) => Promise<number>;
}

async function world(t: Test, ...authorizers: readonly object[]): Promise<World> {
  const file = join(folder(t), 'authorization.yaml');
  const write = (...all: readonly object[]): void => {
    writeFileSync(file, JSON.stringify({ ...HEAD, authorizers: all }));
  };
  write(...authorizers);
  const connect = (kubeconfig: string): ReturnType<typeof connectBy> => connectBy(t, { kubeconfig });
  const made = await scene(t, [...TLS, `--authorization-config=${file}`], { connect });
  return { ...made, write, status: async (path = '/metrics') => (await made.ask(path, ...CLIENT)).status };
}

const ALLOW = { allowed: true };
const NOTHING = { allowed: false };
const DENY = { allowed: false, denied: true };

t.test('authorizers are asked in order, and the first that allows or denies decides', async (t) => {
  const [first, second] = [await hook(t, NOTHING), await hook(t, ALLOW, '')];
  const { status, look, write } = await world(
    t,
    authorizer('first', first),
    authorizer('second', second, { subjectAccessReviewVersion: 'v1beta1' }),
  );
  t.equal(await status(), 200);
  t.same(
    [first.server.last.url, second.server.last.url],
    ['/judge', '/'],
    "the kubeconfig's server is the whole address",
  );
  const attributes = { nonResourceAttributes: { path: '/metrics', verb: 'get' }, user: 'prometheus' };
  const groups = ['scrapers', 'system:authenticated'];
  t.same([first.specs, second.specs], [[{ ...attributes, groups }], [{ ...attributes, group: groups }]]);
  t.equal(await status(), 200);
  t.same([first.specs.length, second.specs.length], [1, 1], 'remembered');
  first.status = DENY;
  t.equal(await status('/configz'), 403);
  t.equal(second.specs.length, 1, 'forbidden is forbidden');
  [first.status, second.status] = [NOTHING, NOTHING];
  t.equal(await status('/flagz'), 403, 'no authorizer allows it');
  write(authorizer('second', second));
  second.status = ALLOW;
  await look();
  t.equal(await status('/flagz'), 200, 'the file is followed');
});

t.test('an authorization webhook without a cache is asked for each request', async (t) => {
  for (const [uncached, isCached] of [
    ['cacheAuthorizedRequests', { [200]: false, [403]: true }],
    ['cacheUnauthorizedRequests', { [200]: true, [403]: false }],
  ] as const) {
    const one = await hook(t, ALLOW);
    const { status } = await world(t, authorizer('one', one, { [uncached]: false }));
    for (const [answer, path] of [
      [ALLOW, '/metrics'],
      [NOTHING, '/configz'],
      [DENY, '/flagz'],
    ] as const) {
      one.status = answer;
      one.specs.length = 0;
      const expected = answer === ALLOW ? 200 : 403;
      t.same([await status(path), await status(path), await status(path)], [expected, expected, expected]);
      t.equal(one.specs.length, isCached[expected] ? 1 : 3, `${uncached}: false, ${path}`);
    }
  }
});

t.test('an authorization webhook that fails denies, or passes to the next, by its failure policy', async (t) => {
  const [silent, second] = [await hook(t, null), await hook(t, ALLOW)];
  const leaves = await world(t, authorizer('silent', silent), authorizer('second', second));
  t.equal(await leaves.status(), 200, 'is left to the next');
  second.status = NOTHING;
  t.match(await leaves.ask('/configz', ...CLIENT), {
    status: 503,
    body: 'Service Unavailable: no SubjectAccessReview from webhook silent\n',
  });
  second.status = ALLOW;
  const denies = await world(t, authorizer('silent', silent, { failurePolicy: 'Deny' }), authorizer('second', second));
  t.equal(await denies.status(), 503);
});

t.test('match conditions select the requests that an authorization webhook is asked about', async (t) => {
  const [first, second] = [await hook(t, DENY), await hook(t, ALLOW)];
  const only = (...sources: readonly string[]): object => ({
    matchConditions: sources.map((expression) => ({ expression })),
  });
  const own = only(
    'has(request.nonResourceAttributes)',
    "'scrapers' in request.groups && request.nonResourceAttributes.path == '/configz'",
  );
  const { status } = await world(t, authorizer('first', first, own), authorizer('second', second));
  t.same([await status(), first.specs.length], [200, 0], 'it is not for this one');
  t.equal(await status('/configz'), 403);
  const wrong = await world(
    t,
    authorizer('first', first, { ...only('request.resourceAttributes.verb == "get"'), failurePolicy: 'Deny' }),
  );
  t.match(await wrong.ask('/metrics', ...CLIENT), {
    status: 503,
    body: /a match condition of webhook first: No such key: resourceAttributes/,
  });
  const skipped = await world(
    t,
    authorizer('first', first, only('request.resourceAttributes.verb == "get"', 'false')),
    authorizer('second', second),
  );
  t.equal(await skipped.status(), 200, 'one that does not hold says enough');
  const named = only(String.raw`request.user.matches(r"\A(promet+heus)+\z")`);
  const denied = await world(t, authorizer('first', first, named), authorizer('second', second));
  t.equal(await denied.status(), 403, 'a regular expression means what RE2 says');
});

t.test('every invalid authorization file is refused with the name of the field', async (t) => {
  const file = join(folder(t), 'authorization.yaml');
  const here = { kubeconfig: '/k' };
  const problem = async (content: object): Promise<string> => {
    writeFileSync(file, JSON.stringify({ ...HEAD, ...content }));
    const connect = (): Promise<never> => Promise.reject(new Error('/k: cannot be read'));
    const opened = await open([...TLS, `--authorization-config=${file}`], { connect });
    return 'problem' in opened ? opened.problem : 'none';
  };
  const one = (more: object): object => ({ authorizers: [authorizer('a', here, more)] });
  t.equal(await problem(one({})), '--authorization-config: /k: cannot be read');
  const cases: readonly (readonly [content: object, field: string])[] = [
    [{ authorizers: [] }, ': is empty'],
    [{ authorizers: [{ ...authorizer('a', here), type: 'RBAC', webhook: null }] }, '[0].type: '],
    [{ authorizers: [authorizer('A', here)] }, '[0].name: '],
    [{ authorizers: [authorizer('a', here), authorizer('a', here)] }, '[1].name: "a": is given twice'],
    [one({ timeout: '31s' }), '[0].webhook.timeout: '],
    [one({ authorizedTTL: null }), '[0].webhook.authorizedTTL: null: has the wrong type'],
    [one({ subjectAccessReviewVersion: 'v2' }), '[0].webhook.subjectAccessReviewVersion: '],
    [one({ failurePolicy: 'Allow' }), '[0].webhook.failurePolicy: '],
    [one({ connectionInfo: { type: 'KubeConfigFile' } }), '[0].webhook.connectionInfo.kubeConfigFile: '],
    [
      one({ connectionInfo: { type: 'InClusterConfig', kubeConfigFile: '/k' } }),
      '[0].webhook.connectionInfo.kubeConfigFile: "/k": must not be given with',
    ],
    [one({ matchConditions: [{ expression: 'other' }] }), '[0].webhook.matchConditions[0].expression: '],
    [
      one({ matchConditions: [{ expression: 'request.user.matches("(?=a)")' }] }),
      String.raw`[0].webhook.matchConditions[0].expression: "request.user.matches(\"(?=a)\")": error parsing regexp: `,
    ],
    [
      one({ matchConditions: [{ expression: 'true' }], matchConditionSubjectAccessReviewVersion: '' }),
      '[0].webhook.matchConditionSubjectAccessReviewVersion: ',
    ],
    [one({ more: 1 }), '[0].webhook.more: is an unknown field'],
  ];
  for (const [content, field] of cases) {
    const text = await problem(content);
    t.ok(text.includes(`AuthorizationConfiguration.authorizers${field}`), `${field} ${text}`);
  }
});
