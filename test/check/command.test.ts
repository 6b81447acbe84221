// The command around the kinds: files, flags, output and exit status.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { check, type Outcome } from '../../src/check/command.js';
import { PROGRAM } from '../support/program.js';

const HEADER = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.0.0.0/8\n';

function run(argv: readonly string[], files: Readonly<Record<string, string>> = {}): Outcome {
  return check(argv, (path) => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT: no such file or directory');
    return text;
  });
}

t.test('exit status: 0, 1 for errors, 2 for what cannot be read', (t) => {
  const files = { right: HEADER, warns: `${HEADER}portRange: x`, wrong: `${HEADER}x: 1`, broken: 'a: "S3cr3t\nb' };
  t.match(run(['right'], files), { status: 0, stdout: '', stderr: '' });
  t.match(run(['warns'], files), { status: 0, stdout: /^warns:4: document 1: warning: / });
  t.match(run(['--strict', 'warns'], files), { status: 1, stdout: /^warns:4: document 1: error: / });
  t.match(run(['wrong', 'right'], files), {
    status: 1,
    stdout: /^wrong:4: document 1: error: .*\.x: is an unknown field\n$/,
  });
  const { status, stdout, stderr } = run(['wrong', 'broken', 'gone'], files);
  t.equal(status, 2);
  t.match(stdout, /^wrong:4: /, 'the others are checked all the same');
  t.match(stderr, /^could not read broken: is no YAML: line \d+: [^"]*\ncould not read gone: ENOENT/);
  t.notMatch(stderr, 'S3cr3t');
  t.end();
});

t.test('what no document says', (t) => {
  const said = (text: string): string => run(['f'], { f: text }).stdout;
  t.match(said('---\n---\n[1]\n'), /^f:3: document 2: error: is no mapping\n$/, 'empty documents count');
  t.match(said('kind: X\n'), 'error: apiVersion: is missing');
  t.match(said('apiVersion: v1\nkind: [1]\n'), 'error: kind: is missing');
  const unknown = { f: 'apiVersion: example.com/v1\nkind: Thing\n' };
  t.match(run(['f'], unknown), { status: 0, stdout: /warning: apiVersion: "example.com\/v1 Thing": is a kind that/ });
  t.equal(run(['f', '--strict'], unknown).status, 1);
  const version = { f: 'apiVersion: kubeproxy.config.k8s.io/v9\nkind: KubeProxyConfiguration\n' };
  t.match(run(['f'], version), {
    status: 1,
    stdout: /is a version that is not known: should be "kubeproxy.config.k8s.io\/v1alpha1"/,
  });
  t.match(run(['f'], { f: '' }), { status: 0, stdout: '' });
  t.end();
});

t.test('a thousand wrong fields are not a thousand lines', (t) => {
  const fields = Array.from({ length: 1000 }, (_, index) => `x${index}: 1\n`).join('');
  const lines = run(['f'], { f: HEADER + fields })
    .stdout.trim()
    .split('\n');
  t.equal(lines.length, 201);
  t.match(lines.at(-1), 'and 800 more errors in this document');
  t.end();
});

t.test('files that admission plugins name are read too', (t) => {
  const admission = (path: string): string =>
    `apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: EventRateLimit, path: ${path}}]\n`;
  const limits = 'apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: []\n';
  const files = {
    'etc/a.yaml': admission('b/e.yaml'),
    'etc/b/e.yaml': limits,
    gone: admission('/x'),
    self: admission('self'),
  };
  t.match(run(['etc/a.yaml'], files), { status: 1, stdout: /^etc\/b\/e\.yaml:3: .*limits: is empty/ });
  t.equal(run(['etc/b/e.yaml', 'etc/a.yaml'], files).stdout.split('\n').length, 2, 'and once');
  t.match(run(['gone'], files), {
    status: 0,
    stdout: /^gone:3: .*warning: .*plugins\[0\]\.path: "\/x": could not be read: ENOENT/,
  });
  t.match(run(['self'], files), { status: 0, stdout: '' });
  t.end();
});

t.test('the command line', (t) => {
  t.match(run([]), { status: 2, stderr: /^check needs a file\n\nUsage: pointsman check/ });
  t.match(run(['--help']), { status: 0, stdout: /^Usage: / });
  t.match(run(['--nope', 'f']), { status: 2, stderr: /--nope/ });
  t.match(run(['-o', 'xml', 'f']), { status: 2, stderr: /^--output: "xml": must be text, json, sarif/ });
  t.match(run(['--kubernetes-version=2', 'f']), { status: 2, stderr: /^--kubernetes-version: "2": must be a release/ });
  t.end();
});

t.test('JSON and SARIF', (t) => {
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
  t.same(JSON.parse(run(['-o', 'json', '/etc/a b.yaml'], files).stdout), { findings: [finding] });
  t.match(JSON.parse(run(['--output=sarif', '/etc/a b.yaml'], files).stdout), {
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'pointsman', rules: [{ id: 'value' }] } },
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
  t.same(JSON.parse(run(['-o', 'json', 'f'], { f: HEADER }).stdout), { findings: [] });
  t.end();
});

t.test('the program', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'check-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'config.yaml');
  writeFileSync(file, `${HEADER}Mode: x\n`);
  t.match(spawnSync(PROGRAM, ['check', file], { encoding: 'utf8' }), {
    status: 1,
    stdout: `${file}:4: document 1: error: KubeProxyConfiguration.Mode: has the wrong case: should be mode\n`,
    stderr: '',
  });
  t.end();
});

t.test('each finding has its line', (t) => {
  const lines = (text: string): readonly string[] =>
    run(['f'], { f: text })
      .stdout.trim()
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
  t.same(lines(`# first\n---\n${proxy}`), [
    '1 KubeProxyConfiguration.featureGates.a.b 14',
    '1 KubeProxyConfiguration.ipvs.strictarp 9',
    '1 KubeProxyConfiguration.ipvs.tcpTimeout 10',
    '1 KubeProxyConfiguration.mode 16',
    '1 KubeProxyConfiguration.nodePortAddresses[1] 13',
  ]);
  t.same(lines(`---\n---\napiVersion: v1\nkind: ServiceList\nitems:\n${service('a')}${service('b')}`), [
    '2 Service[default/a].spec.clusterIP 8',
    '2 Service[default/a].spec.ports 7',
    '2 Service[default/b].spec.clusterIP 11',
    '2 Service[default/b].spec.ports 10',
  ]);
  t.same(lines('apiVersion: audit.k8s.io/v1\nkind: Policy\nx: &r\n- {level: 1}\nrules: *r\n'), [
    '1 Policy.rules[0].level 5',
    '1 Policy.x 3',
  ]);
  t.same(lines('apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n  verbs:\n  - 1\n-\n- {}\n'), [
    '1 Policy.rules[0].verbs[0] 6',
    '1 Policy.rules[1] 3',
    '1 Policy.rules[2] 8',
    '1 Policy.rules[2].level 8',
  ]);
  t.match(JSON.parse(run(['-o', 'json', 'f'], { f: `${HEADER}x: 1` }).stdout), { findings: [{ line: 4 }] });
  t.match(JSON.parse(run(['-o', 'sarif', 'f'], { f: `${HEADER}x: 1` }).stdout), {
    runs: [{ results: [{ locations: [{ physicalLocation: { region: { startLine: 4 } } }] }] }],
  });
  t.end();
});
