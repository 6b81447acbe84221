// The command around the kinds: files, flags, output and exit status.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { check, type Outcome } from '../src/command.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import { eventually, scratchDirectory } from '../../../test/support/manifests.js';
import { PROGRAM } from '../../../test/support/program.js';

const HEADER = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.0.0.0/8\n';

function run(argv: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  return check(argv, (path) => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT: no such file or directory');
    return text;
  });
}

t.test('check exits 0 without findings, 1 with errors, 2 if a file cannot be read', async (t) => {
  const files = { right: HEADER, warns: `${HEADER}portRange: x`, wrong: `${HEADER}x: 1`, broken: 'a: "S3cr3t\nb' };
  t.match(await run(['right'], files), { status: 0, stdout: '', stderr: '' });
  t.match(await run(['warns'], files), { status: 0, stdout: /^warns:4: document 1: warning: / });
  t.match(await run(['--strict', 'warns'], files), { status: 1, stdout: /^warns:4: document 1: error: / });
  t.match(await run(['wrong', 'right'], files), {
    status: 1,
    stdout: /^wrong:4: document 1: error: .*\.x: is an unknown field\n$/,
  });
  const { status, stdout, stderr } = await run(['wrong', 'broken', 'gone'], files);
  t.equal(status, 2);
  t.match(stdout, /^wrong:4: /, 'the others are checked all the same');
  t.match(stderr, /^could not read broken: is no YAML: line \d+: [^"]*\ncould not read gone: ENOENT/);
  t.notMatch(stderr, 'S3cr3t');
});

t.test('check takes the release from --kubernetes-version, else from kubernetesVersion of any file', async (t) => {
  const kubelet =
    'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {SidecarContainers: true}\n';
  const cluster = (version: string): string =>
    `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: ${version}\n`;
  const gone = /SidecarContainers: true: is gone since Kubernetes 1\.37/;
  const files = { kubelet, old: cluster('v1.36.4'), label: cluster('stable-1.36'), new: cluster('v1.37.2') };
  t.match((await run(['kubelet'], files)).stdout, gone, 'the newest that is known');
  t.match((await run(['kubelet', 'new'], files)).stdout, gone);
  for (const file of ['old', 'label']) t.equal((await run(['kubelet', file], files)).stdout, '', file);
  t.match((await run(['--kubernetes-version=v1.37.0', 'kubelet', 'old'], files)).stdout, gone, 'the flag counts first');
  t.match(await run(['gone', 'old'], files), { status: 2, stderr: /^could not read gone: ENOENT[^\n]*\n$/ });
});

t.test('check judges a proxy by the platform of its mode, or by --platform', async (t) => {
  const head = HEADER.replace(/clusterCIDR.*/, '');
  const files = {
    windows: `${head}mode: kernelspace\n`,
    linux: `${HEADER}mode: nftables\n`,
    open: HEADER,
    opened: `${head}detectLocalMode: NodeCIDR\nwindowsRunAsService: true\n`,
    neither: `${HEADER}mode: x\noomScoreAdj: 2000\n`,
  };
  const errors = async (...argv: readonly string[]): Promise<readonly string[]> =>
    (await run(argv, files)).stdout.split('\n').filter((line) => line.includes(': error: '));
  for (const file of ['windows', 'linux', 'open', 'opened']) t.same(await errors(file), [], file);
  t.same(await errors('--platform=windows', 'windows'), []);
  t.same(await errors('--platform=linux', 'linux', 'open'), []);
  t.same((await errors('--platform=linux', 'windows')).length, 1);
  t.match((await errors('--platform=windows', 'linux')).join(), /mode: "nftables": must be kernelspace or blank/);
  const both = await errors('neither');
  t.equal(both.length, 3, 'what is wrong on each is said once');
  t.match(both.join(), /iptables, ipvs, nftables or .*, on Linux.*kernelspace or .*, on Windows/);
  t.match((await run(['--platform=mac', 'open'], files)).stderr, /--platform: "mac": must be linux or windows/);
});

t.test('check refuses a misspelt kind of a known group, and names the nearest', async (t) => {
  const findings = async (apiVersion: string, kind: string): Promise<string> =>
    (await run(['f'], { f: `apiVersion: ${apiVersion}\nkind: ${kind}\n` })).stdout;
  for (const [apiVersion, kind, nearest] of [
    ['apiserver.config.k8s.io/v1', 'EncryptionConfigurations', 'EncryptionConfiguration'],
    ['kubeadm.k8s.io/v1beta4', 'ClusterConfig', null],
    ['kubeadm.k8s.io/v1beta4', 'clusterConfiguration', 'ClusterConfiguration'],
    ['audit.k8s.io/v1', 'Polciy', 'Policy'],
    ['kubeproxy.config.k8s.io/v1alpha1', 'KubeProxyConfigurations', 'KubeProxyConfiguration'],
    ['client.authentication.k8s.io/v1', 'ExecCredentials', 'ExecCredential'],
  ] as const)
    t.equal(
      await findings(apiVersion, kind),
      `f:2: document 1: error: kind: "${apiVersion} ${kind}": is no kind of its group${nearest === null ? '' : `: should be "${nearest}"`}\n`,
    );
  t.match(await findings('kubeproxy.config.k8s.io/v1', 'KubeProxyConfiguration'), /is a version that is not known/);
  t.match(await findings('apps/v1', 'Deployment'), /warning: .*is a kind that is not known here/);
  t.match(await findings('v1', 'Pod'), /warning: .*is a kind that is not known here/);
});

t.test('check finds documents that do not go together in one file', async (t) => {
  const header = (kind: string, group = 'kubeadm.k8s.io/v1beta4'): string => `apiVersion: ${group}\nkind: ${kind}\n`;
  const cluster = header('ClusterConfiguration');
  const init = header('InitConfiguration');
  const upgrade = header('UpgradeConfiguration');
  const join = `${header('JoinConfiguration')}discovery: {file: {kubeConfigPath: /a}, tlsBootstrapToken: abcdef.0123456789abcdef}\n`;
  const findings = async (...documents: readonly string[]): Promise<readonly string[]> =>
    (await run(['f'], { f: documents.join('---\n') })).stdout.split('\n').filter((line) => line !== '');
  t.same(await findings(init, cluster, HEADER.replace('10.0.0.0/8', '10.244.0.0/16')), []);
  t.same(await findings(upgrade), []);
  t.same(await findings(cluster, init, cluster), [
    'f:7: document 3: error: ClusterConfiguration: is given twice in this file',
  ]);
  t.same(await findings(HEADER, HEADER), [
    'f:5: document 2: error: KubeProxyConfiguration: is given twice in this file',
  ]);
  t.same(await findings(init, join), [
    'f:1: document 1: warning: InitConfiguration: is ignored by the command that reads JoinConfiguration',
  ]);
  t.same(await findings(upgrade, cluster), [
    'f:4: document 2: warning: ClusterConfiguration: is ignored by the command that reads UpgradeConfiguration',
  ]);
  t.same((await run(['a', 'b'], { a: cluster, b: cluster })).stdout, '', 'files of two clusters');
});

const CONFIG_MAP = `apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  readme: "kind: of text"
  script: "a: b: c"
  other.yaml: "apiVersion: apps/v1\\nkind: Deployment\\nsepc: 1"
`;

t.test('check reads the configuration files in a ConfigMap', async (t) => {
  const proxy = `  config.conf: |\n    ${HEADER.replaceAll('\n', '\n    ')}`;
  const config = '  kubeconfig.conf: |\n    apiVersion: v1\n    kind: Config\n';
  const admission = '  any: |\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: EncryptionConfiguration\n';
  t.match(await run(['f'], { f: `${CONFIG_MAP}${proxy}mode: ipvs\n${config}` }), { status: 0, stdout: '', stderr: '' });
  const wrong = `${CONFIG_MAP}${proxy}Mode: ipvs\n${config}    users: [{name: a, user: {token: [S3cr3t]}}]\n${admission}`;
  const { stdout, status } = await run(['f'], { f: wrong });
  const at = 'f, ConfigMap kube-system/kube-proxy, key';
  t.same(stdout.trim().split('\n'), [
    `${at} config.conf:4: document 1: error: KubeProxyConfiguration.Mode: has the wrong case: should be mode`,
    `${at} kubeconfig.conf:3: document 1: error: Config.users[0].user.token: has the wrong type, a list: should be text`,
    `${at} any:1: document 1: error: EncryptionConfiguration.resources: is missing: should be a list of at least 1`,
  ]);
  t.equal(status, 1);
  t.match(JSON.parse((await run(['-o', 'sarif', 'f'], { f: wrong })).stdout), {
    runs: [
      {
        results: [
          {
            locations: [
              {
                physicalLocation: { artifactLocation: { uri: 'f' }, region: undefined },
                logicalLocations: [
                  {
                    fullyQualifiedName:
                      'ConfigMap kube-system/kube-proxy, key config.conf: document 1: KubeProxyConfiguration.Mode',
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  });
  const list = `apiVersion: v1\nkind: List\nitems: [${JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data: { 'config.conf': 'a: "b' } })}]`;
  t.match(await run(['f'], { f: list }), {
    status: 2,
    stderr: /^could not read f, ConfigMap default\/, key config.conf: /,
  });
  const typed = `${CONFIG_MAP}  a: 1\nimmutable: "no"\n`;
  t.same((await run(['f'], { f: typed })).stdout.trim().split('\n'), [
    'f:8: document 1: error: ConfigMap.data.a: has the wrong type, a number: should be text',
    'f:9: document 1: error: ConfigMap.immutable: "no": has the wrong type: should be true or false',
  ]);
});

t.test('check judges Services by the limits of the proxies', async (t) => {
  const ports = Array.from({ length: 11 }, (_, index) => ({ name: `p${index}`, port: 80 + index }));
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports },
  };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports,
    endpoints: ['10.0.0.1', '10.0.0.2'].map((address) => ({ addresses: [address] })),
  };
  const files = { service: JSON.stringify(service), slice: JSON.stringify(slice), c: HEADER };
  const findings = async (...argv: readonly string[]): Promise<unknown> => {
    const { stdout } = await run([...argv, 'service', '-o', 'json'], files);
    return (JSON.parse(stdout) as { readonly findings: readonly object[] }).findings;
  };
  const found = { severity: 'error', rule: 'frontends', path: 'Service[default/web].spec.ports' };
  t.same(await findings('slice'), []);
  t.match(await findings('--service-frontends-max=10'), [{ ...found, problem: /make 11 frontends .* at most 10$/ }]);
  t.same(await findings('--service-frontends-max=11'), []);
  t.match(await findings('slice', '--service-entries-max=21'), [{ ...found, problem: /^1 of 11 frontends/ }]);
  t.same(await findings('slice', '--service-entries-max=22'), []);
  t.same(await findings('--service-entries-max=21'), [], 'without its endpoints');
  t.match(await run(['service', '--service-entries-max=0'], files), {
    status: 2,
    stderr: /^--service-entries-max: Invalid value: "0": must be a number greater than 0/,
  });
});

t.test('check reports a file without a document', async (t) => {
  const reported = async (text: string): Promise<string> => (await run(['f'], { f: text })).stdout;
  t.match(await reported('---\n---\n[1]\n'), /^f:3: document 2: error: is no mapping\n$/, 'empty documents count');
  t.match(await reported('kind: X\n'), 'error: apiVersion: is missing');
  t.match(await reported('apiVersion: v1\nkind: [1]\n'), 'error: kind: is missing');
  const unknown = { f: 'apiVersion: example.com/v1\nkind: Thing\n' };
  t.match(await run(['f'], unknown), {
    status: 0,
    stdout: /warning: apiVersion: "example.com\/v1 Thing": is a kind that/,
  });
  t.equal((await run(['f', '--strict'], unknown)).status, 1);
  const version = { f: 'apiVersion: kubeproxy.config.k8s.io/v9\nkind: KubeProxyConfiguration\n' };
  t.match(await run(['f'], version), {
    status: 1,
    stdout: /is a version that is not known: should be "kubeproxy.config.k8s.io\/v1alpha1"/,
  });
  t.match(await run(['f'], { f: '' }), { status: 0, stdout: '' });
});

t.test('check prints at most 200 findings of a document, and the number of the others', async (t) => {
  const fields = Array.from({ length: 1000 }, (_, index) => `x${index}: 1\n`).join('');
  const lines = (await run(['f'], { f: HEADER + fields })).stdout.trim().split('\n');
  t.equal(lines.length, 201);
  t.match(lines.at(-1), 'and 800 more errors in this document');
});

t.test('check escapes control characters and newlines of files in its output', async (t) => {
  const red = '\u001b[31m';
  const { stdout, stderr } = await run(['f', red], { f: `${HEADER}"\\e[31m\\nf:1": 1\n` });
  t.equal(stdout, 'f:4: document 1: error: KubeProxyConfiguration.\\u001b[31m\\u000af:1: is an unknown field\n');
  t.match(stderr, /^could not read \\u001b\[31m: ENOENT/);
});

t.test('check exits 1 for an error behind 600 warnings', async (t) => {
  const strangers = 'apiVersion: example.com/v1\nkind: Thing\n---\n'.repeat(600);
  const { stdout, status } = await run(['f'], { f: `${strangers}${HEADER}x: 1\n` });
  t.match(stdout, /\nf: error: and 101 more findings\n$/);
  t.equal(status, 1);
});

t.test('check reads the configuration files that an AdmissionConfiguration names, each once', async (t) => {
  const admission = (path: string): string =>
    `apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: EventRateLimit, path: ${path}}]\n`;
  const limits = 'apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: []\n';
  const files = {
    'etc/a.yaml': admission('b/e.yaml'),
    'etc/b/e.yaml': limits,
    gone: admission('/x'),
    self: admission('self'),
  };
  t.match(await run(['etc/a.yaml'], files), { status: 1, stdout: /^etc\/b\/e\.yaml:3: .*limits: is empty/ });
  t.equal((await run(['etc/b/e.yaml', 'etc/a.yaml'], files)).stdout.split('\n').length, 2, 'and once');
  t.match(await run(['gone'], files), {
    status: 0,
    stdout: /^gone:3: .*warning: .*plugins\[0\]\.path: "\/x": could not be read: ENOENT/,
  });
  t.match(await run(['self'], files), { status: 0, stdout: '' });
});

t.test('check refuses wrong command lines with status 2', async (t) => {
  t.match(await run([]), { status: 2, stderr: /^check needs a file, or --cluster\n\nUsage: pointsman check/ });
  t.match(await run(['--help']), { status: 0, stdout: /^Usage: / });
  t.match(await run(['--nope', 'f']), { status: 2, stderr: /--nope/ });
  t.match(await run(['-o', 'xml', 'f']), { status: 2, stderr: /^--output: "xml": must be text, json, yaml, sarif/ });
  t.match(await run(['--kubernetes-version=2', 'f']), {
    status: 2,
    stderr: /^--kubernetes-version: "2": must be a release/,
  });
});

t.test('SARIF messages have no links and placeholders of checked files', async (t) => {
  for (const [value, text] of [
    ['[x](http://example.com)', '"\\[x\\](http://example.com)"'],
    ['a\\](b)', '"a\\\\\\\\\\](b)"'],
    ['{0} [1]', '"{{0}} [1]"'],
  ] as const) {
    const files = { f: `${HEADER}mode: '${value}'\n` };
    const { runs } = JSON.parse((await run(['-o', 'sarif', 'f'], files)).stdout) as {
      readonly runs: [{ readonly results: [{ readonly message: { readonly text: string } }] }];
    };
    const [{ message }] = runs[0].results;
    t.ok(message.text.startsWith(`KubeProxyConfiguration.mode: ${text}: `), message.text);
  }
});

t.test('check prints findings as JSON and SARIF', async (t) => {
  const files = { '/etc/a b.yaml': `${HEADER}oomScoreAdj: 2000\n` };
  const finding = {
    severity: 'error',
    rule: 'value',
    file: '/etc/a b.yaml',
    document: 1,
    line: 4,
    path: 'KubeProxyConfiguration.oomScoreAdj',
    value: '2000',
    problem: 'must be within the range [-1000, 1000]',
    expected: '',
  };
  t.same(JSON.parse((await run(['-o', 'json', '/etc/a b.yaml'], files)).stdout), { findings: [finding] });
  const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as { readonly version: string };
  t.match(JSON.parse((await run(['--output=sarif', '/etc/a b.yaml'], files)).stdout), {
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'pointsman', semanticVersion: version, rules: [{ id: 'value' }] } },
        results: [
          {
            ruleId: 'value',
            ruleIndex: 0,
            level: 'error',
            message: {
              text: 'KubeProxyConfiguration.oomScoreAdj: 2000: must be within the range [-1000, 1000]',
            },
            locations: [
              {
                physicalLocation: { artifactLocation: { uri: 'file:///etc/a%20b.yaml' } },
                logicalLocations: [{ fullyQualifiedName: 'document 1: KubeProxyConfiguration.oomScoreAdj' }],
              },
            ],
          },
        ],
      },
    ],
  });
  t.same(JSON.parse((await run(['-o', 'json', 'f'], { f: HEADER })).stdout), { findings: [] });
});

t.test('pointsman check runs as a program: status, output and encoding', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'check-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'config.yaml');
  writeFileSync(file, `${HEADER}Mode: x\n`);
  const latin = join(folder, 'latin.yaml');
  writeFileSync(latin, `${HEADER}hostnameOverride: "bär"\n`, 'latin1');
  t.match(spawnSync(PROGRAM, ['check', latin], { encoding: 'utf8' }), {
    status: 2,
    stdout: '',
    stderr: `could not read ${latin}: is no UTF-8\n`,
  });
  t.match(spawnSync(PROGRAM, ['check', file], { encoding: 'utf8' }), {
    status: 1,
    stdout: `${file}:4: document 1: error: KubeProxyConfiguration.Mode: has the wrong case: should be mode\n`,
    stderr: '',
  });
  t.end();
});

/** The command in a shell, where `$0` is the program. */
function inShell(command: string, cwd: string): { readonly stdout: string; readonly status: number | null } {
  return spawnSync('bash', ['-c', command, PROGRAM], { cwd, encoding: 'utf8' });
}

t.test('check reads pipes and devices as it can', async (t) => {
  const folder = scratchDirectory(t);
  writeFileSync(join(folder, 'a'), `${HEADER}x: 1\n`);
  const wrong = (name: string) => ({
    stdout: `${name}:4: document 1: error: KubeProxyConfiguration.x: is an unknown field\n`,
    status: 1,
  });
  t.match(inShell('"$0" check - < a', folder), wrong('-'));
  t.match(inShell('cat a | "$0" check -', folder), wrong('-'));
  t.match(inShell('cat a | "$0" check /dev/stdin', folder), wrong('/dev/stdin'));
  t.match(inShell('exec 9< <(cat a); "$0" check /dev/fd/9', folder), wrong('/dev/fd/9'));
  t.match(inShell('"$0" check /dev/zero 2>&1', folder), {
    stdout: /^could not read \/dev\/zero: is larger than/,
    status: 2,
  });
  t.match(inShell('"$0" check . 2>&1', folder), { stdout: /^could not read \.: has no file \*\.yaml/, status: 2 });
  for (const name of ['b.conf', 'c.yaml', '.hidden.yaml']) writeFileSync(join(folder, name), `${HEADER}z: 1\n`);
  t.match(
    inShell('"$0" check . a', folder),
    { stdout: /^b\.conf:4: .*\nc\.yaml:4: .*\na:4: .*\n$/, status: 1 },
    'the files of a folder',
  );

  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  t.match(
    inShell('(cat a > pipe) & "$0" check pipe', folder),
    wrong('pipe'),
    'the first of reader and writer waits for the other',
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const child = spawn(PROGRAM, ['check', pipe], { stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    await eventually(() => holds(child.pid, pipe), 'waits for a writer');
    child.kill(signal);
    t.same(await ended, [signal === 'SIGINT' ? 130 : 143, null], 'a signal ends that');
  }

  const admission = `apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: EventRateLimit, path: pipe}]\n`;
  writeFileSync(join(folder, 'named'), admission);
  t.match(
    spawnSync(PROGRAM, ['check', 'named'], { cwd: folder, encoding: 'utf8', timeout: 60_000 }),
    { stdout: /^named:3: .*plugins\[0\]\.path: "pipe": could not be read: is no regular file\n$/, status: 0 },
    'what a document names is not waited for',
  );
});

/** Whether a process has a file open. */
function holds(pid: number | undefined, path: string): boolean {
  const folder = `/proc/${pid ?? ''}/fd`;
  try {
    return readdirSync(folder).some((file) => readlinkSync(join(folder, file)) === path);
  } catch {
    // One that was closed meanwhile.
    return false;
  }
}

t.test('check reports the line of each finding', async (t) => {
  const lines = async (text: string): Promise<readonly string[]> =>
    (await run(['f'], { f: text })).stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(/^f:(\d+): document (\d+): \w+: ([^: ]*).*$/, '$2 $3 $1'))
      .sort();
  const proxy = `${HEADER}
ipvs:
  scheduler: rr
  strictarp: true
  tcpTimeout: x
nodePortAddresses: [ 10.0.0.0/8,

  y ]
featureGates: {a.b: 1}
mode: ipvs
mode: nftables
`;
  const service = (name: string): string => `  - metadata: {name: ${name}}
    spec:
      clusterIP: x
`;
  t.same(await lines(`# first\n---\n${proxy}`), [
    '1 KubeProxyConfiguration.featureGates.a.b 14',
    '1 KubeProxyConfiguration.ipvs.strictarp 9',
    '1 KubeProxyConfiguration.ipvs.tcpTimeout 10',
    '1 KubeProxyConfiguration.mode 16',
    '1 KubeProxyConfiguration.nodePortAddresses[1] 13',
  ]);
  t.same(await lines(`---\n---\napiVersion: v1\nkind: ServiceList\nitems:\n${service('a')}${service('b')}`), [
    '2 Service[default/a].spec.clusterIP 8',
    '2 Service[default/a].spec.ports 7',
    '2 Service[default/b].spec.clusterIP 11',
    '2 Service[default/b].spec.ports 10',
  ]);
  t.same(await lines('apiVersion: audit.k8s.io/v1\nkind: Policy\nx: &r\n- {level: 1}\nrules: *r\n'), [
    '1 Policy.rules[0].level 5',
    '1 Policy.x 3',
  ]);
  t.same(await lines('apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n  verbs:\n  - 1\n-\n- {}\n'), [
    '1 Policy.rules[0].verbs[0] 6',
    '1 Policy.rules[1] 3',
    '1 Policy.rules[2] 8',
    '1 Policy.rules[2].level 8',
  ]);
  t.match(JSON.parse((await run(['-o', 'json', 'f'], { f: `${HEADER}x: 1` })).stdout), { findings: [{ line: 4 }] });
  t.match(JSON.parse((await run(['-o', 'sarif', 'f'], { f: `${HEADER}x: 1` })).stdout), {
    runs: [{ results: [{ locations: [{ physicalLocation: { region: { startLine: 4 } } }] }] }],
  });
});
