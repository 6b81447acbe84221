import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { resolveAccess, type Access } from '../../../src/sources/kubernetes/auth/access.js';
import { KubeconfigError } from '../../../src/sources/kubernetes/auth/errors.js';
import { parseKubeconfig } from '../../../src/sources/kubernetes/auth/kubeconfig.js';
import { environmentProxy, parseProxyUrl } from '../../../src/sources/kubernetes/auth/proxy.js';
import { scratch } from './connect.js';

/** What kubeadm writes for its proxy. */
const KUBEADM = `
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://control-plane.example:6443
  name: default
contexts:
- context:
    cluster: default
    namespace: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
`;

interface Parts {
  readonly cluster?: string;
  readonly user?: string;
  readonly rest?: string;
}

/** A kubeconfig of flow mappings. */
function text({ cluster = 'server: https://one:6443', user = '', rest = '' }: Parts): string {
  return `current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
${rest}`;
}

function problemsOf(kubeconfig: string): readonly string[] {
  try {
    parseKubeconfig(kubeconfig, 'file');
  } catch (error) {
    if (error instanceof KubeconfigError) return error.problems;
    throw error;
  }
  return [];
}

const directory = scratch(t);
let files = 0;

async function access(kubeconfig: string, master = '', env: Record<string, string> = {}): Promise<Access> {
  const file = join(directory, `kubeconfig-${files++}`);
  writeFileSync(file, kubeconfig);
  return resolveAccess({ kubeconfig: file, master, env, serviceAccountDirectory: '/nowhere' });
}

async function refusal(kubeconfig: string, master = ''): Promise<string> {
  try {
    await access(kubeconfig, master);
  } catch (error) {
    if (error instanceof KubeconfigError) return error.problems.join('; ');
    throw error;
  }
  return '';
}

t.test('a kubeconfig of kubeadm is read', async (t) => {
  const { server, tls, login, impersonate, warnings } = await access(KUBEADM);
  t.equal(server.href, 'https://control-plane.example:6443/');
  t.equal(tls?.serverName, 'control-plane.example');
  t.match(tls?.authority, { type: 'file', path: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' });
  t.same(login, {
    token: '',
    tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
    basic: null,
    exec: null,
  });
  t.same([impersonate, warnings], [null, []]);
});

t.test('relative paths are relative to the kubeconfig', (t) => {
  const user =
    'tokenFile: sub/token, client-certificate: ../me.crt, client-key: me.key, exec: {apiVersion: a, command: EXEC}';
  const parsed = (command: string): unknown => {
    const config = parseKubeconfig(
      text({ cluster: 'certificate-authority: ca.crt', user: user.replace('EXEC', command) }),
      '/etc/node/kubeconfig',
    );
    return { ...config.clusters.get('k'), ...config.users.get('u') };
  };
  t.match(parsed('./bin/login'), {
    authority: { path: '/etc/node/ca.crt' },
    tokenFile: '/etc/node/sub/token',
    certificate: { path: '/etc/me.crt' },
    key: { path: '/etc/node/me.key' },
    exec: { command: '/etc/node/bin/login' },
  });
  t.match(parsed('login'), { exec: { command: 'login' } }, 'a bare name is looked up in PATH');
  t.match(parsed('/bin/login'), { exec: { command: '/bin/login' } });
  t.end();
});

t.test('each wrong field of a kubeconfig is named, without secrets', (t) => {
  t.same(problemsOf(text({ user: 'token: 12345, password: [x], tokenFile: {}, as-groups: a, username: 7' })), [
    'users[0].user.token: must be a string',
    'users[0].user.tokenFile: must be a string',
    'users[0].user.as-groups: must be a list',
    'users[0].user.username: must be a string',
    'users[0].user.password: must be a string',
  ]);
  t.same(problemsOf(text({ user: 'exec: { command: a, args: [12345678], env: [secret] }' })), [
    'users[0].user.exec.args[0]: must be a string',
    'users[0].user.exec.env[0]: must be a mapping',
  ]);
  t.same(problemsOf(text({ user: 'exec: secret' })), ['users[0].user.exec: must be a mapping']);
  t.same(problemsOf('users: [{name: a, user: secret}, secret]'), [
    'users[0].user: must be a mapping',
    'users[1]: must be a mapping',
  ]);
  t.same(problemsOf('users: secret'), ['users: must be a list']);
  t.same(problemsOf(text({ cluster: 'insecure-skip-tls-verify: "yes", certificate-authority-data: "%%"' })), [
    'clusters[0].cluster.insecure-skip-tls-verify: must be true or false',
    'clusters[0].cluster.certificate-authority-data: must be base64',
  ]);
  t.same(problemsOf(text({ cluster: 'certificate-authority: a, certificate-authority-data: YQ==' })), [
    'clusters[0].cluster.certificate-authority-data: must not be given beside certificate-authority',
  ]);
  t.same(problemsOf(text({ user: 'as: "a\\nb"' })), ['users[0].user.as: must be text without control characters']);
  t.same(problemsOf('apiVersion: v2\nkind: Pod'), ['apiVersion: must be v1', 'kind: must be Config']);
  t.same(problemsOf('users: [{name: a, user: {}}, {name: a, user: {}}, {user: {}}]'), [
    'users[1].name: is given twice',
    'users[2].name: is missing: should be text',
  ]);
  t.same(problemsOf('- a'), ['must be a mapping']);
  t.same(problemsOf('a: b\n---\nc: d'), ['holds 2 documents, must be one']);
  t.match(problemsOf('a: [secret')[0], /^is no YAML: line 1: /);
  t.notMatch(problemsOf('a: [secret')[0], /secret/);
  t.same(problemsOf(''), []);
  t.end();
});

t.test('unknown fields of a kubeconfig are warnings', (t) => {
  const { warnings } = parseKubeconfig(text({ user: 'tokenfile: /a', rest: 'colour: red' }), 'file');
  t.same([...warnings].sort(), [
    'colour: is an unknown field',
    'users[0].user.tokenfile: has the wrong case: should be tokenFile',
  ]);
  t.end();
});

t.test('a kubeconfig is parsed as kubectl does', (t) => {
  const base =
    'x: &base {server: "https://a:1"}\nclusters: [{name: k, cluster: {<<: *base, insecure-skip-tls-verify: yes}}]';
  t.match(parseKubeconfig(base, 'file').clusters.get('k'), { server: 'https://a:1', 'insecure-skip-tls-verify': true });
  t.end();
});

t.test('kubeconfig: the current context is used, and a missing one is an error', async (t) => {
  t.equal(await refusal(''), 'current-context: is required');
  t.equal(await refusal('current-context: x'), 'current-context: "x": no such context in contexts');
  const only = (context: string): string => `current-context: c\ncontexts: [{name: c, context: {${context}}}]`;
  t.equal(await refusal(only('cluster: k')), 'contexts[0].context.cluster: "k": no such cluster in clusters');
  t.equal(await refusal(only('')), 'contexts[0].context.cluster: "": no such cluster in clusters');
  t.equal(await refusal(only(''), 'https://a'), '', 'a server of --master needs no cluster');
  t.equal(
    await refusal(`${only('cluster: k, user: u')}\nclusters: [{name: k, cluster: {server: "https://a"}}]`),
    'contexts[0].context.user: "u": no such user in users',
  );
  const anonymous = `${only('cluster: k')}\nclusters: [{name: k, cluster: {server: "https://a", certificate-authority: /ca}}]`;
  t.match((await access(anonymous)).tls, { authority: { path: '/ca' } });
  await t.rejects(
    resolveAccess({ kubeconfig: '/nonexistent/file', master: '', env: {}, serviceAccountDirectory: '' }),
    { message: /^\/nonexistent\/file: cannot be read: ENOENT/ },
  );
});

t.test('kubeconfig: server addresses are checked', async (t) => {
  const server = async (given: string, master = ''): Promise<string> => {
    const { server, tls } = await access(text({ cluster: `server: "${given}"` }), master);
    return `${server.href} ${tls?.serverName ?? 'no TLS'}`;
  };
  t.equal(await server('https://[fd00::1]:6443'), 'https://[fd00::1]:6443/ fd00::1');
  t.equal(await server('https://a/k8s/cluster?x=1#y'), 'https://a/k8s/cluster a', 'a path stays');
  t.equal(await server('localhost:8080'), 'http://localhost:8080/ no TLS');
  t.equal(await server('https://a', 'https://b:1'), 'https://b:1/ b');
  t.equal(await refusal(text({ cluster: 'tls-server-name: a' })), 'clusters[0].cluster.server: is required');
  t.equal(await refusal(text({}), 'ftp://a'), '--master: must be a URL https://… or http://…');
  t.equal(
    await refusal(text({ cluster: 'server: "https://u:p@a"' })),
    'clusters[0].cluster.server: must not hold a user name or password',
  );
  const bare = await resolveAccess({ kubeconfig: '', master: 'a:80', env: {}, serviceAccountDirectory: '' });
  t.match(bare, { origin: '--master', tls: null });
});

t.test('kubeconfig: invalid users are refused', async (t) => {
  const user = async (fields: string): Promise<string> => refusal(text({ user: fields }));
  t.equal(await user('token: a, username: b'), 'users[0].user: must have either a token or a username and password');
  t.equal(await user('username: "a:b"'), 'users[0].user.username: must not hold a colon');
  t.equal(await user('token: "a b"'), 'users[0].user.token: must be printable ASCII');
  t.equal(
    await user('client-key: a'),
    'users[0].user: client-certificate or client-certificate-data is required beside a client key',
  );
  t.equal(
    await user('client-certificate: a'),
    'users[0].user: client-key or client-key-data is required beside a client certificate',
  );
  t.equal(await user('as-groups: [a]'), 'users[0].user.as: is required beside as-uid, as-groups and as-user-extra');
  t.match(
    await user('auth-provider: {name: gcp}'),
    /users\[0\]\.user\.auth-provider: "gcp": auth providers are not supported/,
  );
  t.equal(
    await refusal(text({ cluster: 'server: "https://a", insecure-skip-tls-verify: true, certificate-authority: /a' })),
    'clusters[0].cluster.insecure-skip-tls-verify: must not be true beside a certificate authority',
  );
});

t.test('kubeconfig: exec settings are checked', async (t) => {
  const v1 = 'client.authentication.k8s.io/v1';
  const exec = async (fields: string): Promise<string> => refusal(text({ user: `exec: {${fields}}` }));
  t.match(await exec('command: a'), /exec\.apiVersion: "": must be client\.authentication\.k8s\.io\/v1 or .*v1beta1/);
  t.match(await exec('command: a, apiVersion: client.authentication.k8s.io/v1alpha1'), /apiVersion/);
  t.match(
    await exec(`command: a, apiVersion: ${v1}`),
    /exec\.interactiveMode: "": must be one of Never, IfAvailable, Always/,
  );
  t.match(await exec(`apiVersion: ${v1}, interactiveMode: Never`), /users\[0\]\.user\.exec\.command: is required/);
  t.equal(await exec(`apiVersion: ${v1}, interactiveMode: Never, command: a`), '');
  const beta = await access(
    text({ user: `exec: {apiVersion: ${v1}beta1, command: a, env: [{name: A, value: b}], args: [c]}` }),
  );
  t.match(beta.login.exec, { interactiveMode: 'IfAvailable', env: [['A', 'b']], args: ['c'], cluster: null });
  const cut = '"secret\\0"';
  t.equal(
    await exec(
      `apiVersion: ${v1}, interactiveMode: Never, command: ${cut}, args: [a, ${cut}], env: [{name: A, value: ${cut}}, {name: ${cut}, value: b}]`,
    ),
    ['command', 'args[1]', 'env[0].value', 'env[1].name']
      .map((field) => `users[0].user.exec.${field}: must not hold a null character`)
      .join('; '),
  );
  t.same(problemsOf(text({ user: 'exec: {command: a, env: [{value: b}]}' })), [
    'users[0].user.exec.env[0].name: is missing: should be text',
  ]);
});

t.test('kubeconfig: proxy-url is checked', async (t) => {
  const proxy = async (fields: string, env = {}): Promise<unknown> =>
    (await access(text({ cluster: `server: "https://one:6443", ${fields}` }), '', env)).proxy;
  t.same(await proxy('proxy-url: "http://u%40:p@10.0.0.1:3128"'), {
    type: 'http',
    host: '10.0.0.1',
    port: 3128,
    login: { username: 'u@', password: 'p' },
  });
  t.same(await proxy('proxy-url: "socks5://[::1]"'), { type: 'socks5', host: '::1', port: 1080, login: null });
  t.match(await proxy('', { HTTPS_PROXY: 'p:1' }), { type: 'http', host: 'p', port: 1 });
  t.match(await proxy('proxy-url: "https://q"', { HTTPS_PROXY: 'p:1' }), { type: 'https', host: 'q', port: 443 });
  const problem = await refusal(text({ cluster: 'server: "https://a", proxy-url: "ftp://user:hidden@a"' }));
  t.equal(problem, 'clusters[0].cluster.proxy-url: must be a URL http://…, https://… or socks5://…');
  t.type(parseProxyUrl('http://%ff@a'), 'string');
  await t.rejects(access(text({}), '', { HTTPS_PROXY: 'ftp://a' }), {
    message: /environment variable HTTPS_PROXY: must be/,
  });
});

t.test('NO_PROXY is matched as in Go', (t) => {
  const rows: readonly (readonly [noProxy: string, url: string, direct: boolean])[] = [
    ['', 'https://a.example', false],
    ['', 'https://localhost:6443', true],
    ['', 'https://127.1.2.3', true],
    ['', 'https://[::1]', true],
    ['*', 'https://a.example', true],
    ['example', 'https://a.example', true],
    ['example', 'https://example', true],
    ['example', 'https://anexample', false],
    ['.example', 'https://example', false],
    ['*.example', 'https://a.example', true],
    ['*.example', 'https://example', false],
    ['A.Example', 'https://a.example', true],
    ['a.example:6443', 'https://a.example:6443', true],
    ['a.example:6443', 'https://a.example', false],
    ['a.example:443', 'https://a.example', true],
    ['10.96.0.0/12', 'https://10.96.0.1', true],
    ['10.96.0.0/12', 'https://10.1.0.1', false],
    ['fd00::/8', 'https://[fd00::1]', true],
    ['10.0.0.1', 'https://10.0.0.1:6443', true],
    ['10.0.0.1:80', 'https://10.0.0.1:6443', false],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['fd00::1', 'https://[fd00::1]:6443', true],
    [' x , a.example ', 'https://a.example', true],
  ];
  for (const [noProxy, url, direct] of rows) {
    const proxy = environmentProxy(new URL(url), { HTTPS_PROXY: 'http://p', NO_PROXY: noProxy });
    t.equal(proxy === null, direct, `NO_PROXY="${noProxy}" ${url}`);
  }
  t.equal(environmentProxy(new URL('http://a'), { HTTPS_PROXY: 'http://p' }), null, 'by scheme');
  t.match(environmentProxy(new URL('http://a'), { http_proxy: 'http://p' }), { host: 'p' });
  t.equal(environmentProxy(new URL('https://a'), { https_proxy: 'http://p', no_proxy: 'a' }), null);
  t.end();
});

t.test('any text in a kubeconfig field gives a value or one error that names the file', async (t) => {
  const whole: unknown = JSON.parse(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
      clusters: [
        {
          name: 'k',
          cluster: {
            server: 'https://a',
            'tls-server-name': 'a',
            'insecure-skip-tls-verify': false,
            'certificate-authority-data': 'YQ==',
            'proxy-url': 'http://p',
            extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { a: 1 } }],
          },
        },
      ],
      users: [
        {
          name: 'u',
          user: {
            token: 't',
            'client-certificate': 'a',
            'client-key': 'b',
            as: 'x',
            'as-groups': ['g'],
            'as-user-extra': { k: ['v'] },
            exec: {
              command: 'c',
              apiVersion: 'client.authentication.k8s.io/v1',
              interactiveMode: 'Never',
              args: ['a'],
              env: [{ name: 'n', value: 'v' }],
            },
          },
        },
      ],
    }),
  );
  t.equal(await refusal(JSON.stringify(whole)), '', 'as it is, it is fine');
  let refused = 0;
  for (const path of pathsOf(whole)) {
    for (const value of [null, '', 'x', 7, true, [], {}, [null], [{}], { name: {} }, '\u0000', '%']) {
      const changed = withValue(whole, path, value);
      // Anything but a KubeconfigError fails the test.
      if ((await refusal(JSON.stringify(changed))) !== '') refused++;
    }
  }
  t.ok(refused > 100, `${refused} refused`);
});

type Path = readonly (string | number)[];

function pathsOf(value: unknown): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [[]];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [[], ...entries.flatMap(([key, part]) => pathsOf(part).map((rest): Path => [key, ...rest]))];
}

function withValue(whole: unknown, [head, ...rest]: Path, value: unknown): unknown {
  if (head === undefined) return value;
  if (Array.isArray(whole))
    return whole.map((part: unknown, index) => (index === head ? withValue(part, rest, value) : part));
  if (typeof whole !== 'object' || whole === null) return value;
  return Object.fromEntries(
    Object.entries(whole).map(([key, part]) => [key, key === head ? withValue(part, rest, value) : part]),
  );
}

t.test('a directory in place of the kubeconfig is an error', async (t) => {
  const path = join(directory, 'directory');
  mkdirSync(path);
  await t.rejects(resolveAccess({ kubeconfig: path, master: '', env: {}, serviceAccountDirectory: '' }), {
    message: /cannot be read: EISDIR/,
  });
});
