// Command lines in environment files, units of systemd and containers: findings with file and line.
import t from 'tap';
import { check } from '../src/command.js';

async function errors(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { stdout, stderr } = await check(Object.keys(files), (path) => files[path] ?? '');
  t.equal(stderr, '');
  return stdout.split('\n').filter((line) => line !== '' && !line.includes(': is deprecated'));
}

t.test('check reads kubeadm-flags.env: each flag, and the rules between flags', async (t) => {
  const env = (flags: string): Readonly<Record<string, string>> => ({
    e: `# by kubeadm\nKUBELET_KUBEADM_ARGS="${flags}"\n`,
  });
  const rows: readonly (readonly [wrong: string, error: string, right: string])[] = [
    [
      '--node-ip=192.0.2.1,192.0.2.2',
      '--node-ip: "192.0.2.1,192.0.2.2" cannot be read: should be an IP address that other machines reach, or one of each family with a comma between',
      '--node-ip=192.0.2.1,2001:db8::1',
    ],
    [
      '--image-gc-low-threshold=86',
      '--image-gc-low-threshold: "86" must be below imageGCHighThresholdPercent',
      '--image-gc-low-threshold 86 --image-gc-high-threshold 90',
    ],
    ['--max-pods', '--max-pods: has no value', '--fail-swap-on --max-pods 7'],
    ['--fail-swap-on false', 'a word that is no flag of the program', '--fail-swap-on=false'],
    [
      '--node-labels=\\"a=b c\\"',
      '--node-labels: "a=b c" cannot be read: should be labels such as example.com/role=gpu, of kubernetes.io only those that a node may give itself',
      '--node-labels=\\"a=b,c=d\\"',
    ],
  ];
  for (const [wrong, error, right] of rows) {
    t.same(await errors(env(wrong)), [`e:2: error: KUBELET_KUBEADM_ARGS: ${error}`], wrong);
    t.same(await errors(env(right)), [], right);
  }
  t.match(await errors(env('--no-such-flag=1')), [/warning: .*"no-such-flag" is a flag that is not known here/]);
  const file =
    'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nimageGCHighThresholdPercent: 95\n';
  t.same(await errors({ ...env('--image-gc-low-threshold=90'), f: file }), [], 'over the file that is given, too');
  t.match(await errors({ e: 'OTHER=1\n' }), [/^e: warning: has no command line that is known here/]);
});

t.test('check reads drop-ins of systemd: variables, commands and continued lines', async (t) => {
  const unit = (port: string, mode: string): string =>
    [
      '[Service]',
      `Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml" "KUBELET_EXTRA_ARGS=--port=${port}"`,
      'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
      'ExecStart=',
      'ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_EXTRA_ARGS --hostname-override=${NAME} --max-pods=$MAX \\',
      `  --authorization-mode=${mode}`,
    ].join('\n');
  t.same(await errors({ u: unit('10250', 'Webhook') }), []);
  t.same(await errors({ u: unit('70000', 'webhook') }), [
    'u:2: error: KUBELET_EXTRA_ARGS: --port: "70000" is out of range: should be an integer from 1 to 65535',
    'u:5: error: ExecStart: --authorization-mode: "webhook" has the wrong case: should be "Webhook"',
  ]);
});

t.test('check reads the command lines of static pods and other containers', async (t) => {
  const pod = (flag: string): string =>
    [
      'apiVersion: v1',
      'kind: Pod',
      'metadata: {name: kube-apiserver}',
      'spec:',
      '  containers:',
      '  - name: a',
      '    command:',
      '    - kube-apiserver',
      '    - --advertise-address=$(POD_IP)',
      `    - ${flag}`,
      '    args: [--v=2]',
    ].join('\n');
  t.same(await errors({ p: pod('--secure-port=6443') }), []);
  t.same(await errors({ p: pod('--secure-port=70000') }), [
    'p:10: document 1: error: Pod.spec.containers[0].command[2]: --secure-port: "70000" is out of range: should be an integer from 1 to 65535',
  ]);
  const set = (flag: string): string =>
    JSON.stringify({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      spec: { template: { spec: { containers: [{ command: ['/hyperkube', 'kubelet'], args: [flag] }] } } },
    });
  t.same(await errors({ s: set('--runtime-cgroups=/a') }), []);
  t.same(await errors({ s: set('--runtime-cgroups=a') }), [
    's:1: document 1: error: DaemonSet.spec.template.spec.containers[0].args[0]: --runtime-cgroups: "a" cannot be read: should be an absolute path',
  ]);
  const other = 'apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [nginx, --secure-port=x]}]}\n';
  t.match(await errors({ o: other }), [/^o:1: document 1: warning: .*is a kind that is not known here/]);
});

t.test('check shows no value of a secret flag in a command line', async (t) => {
  const found = await errors({ e: 'KUBELET_EXTRA_ARGS=--manifest-url-header=S3cr3t S3cr3t\n' });
  t.equal(found.length, 2);
  t.notMatch(found.join(), 'S3cr3t');
});
