// Flags of kubelets: each is parsed as what it is, and the rules of the file hold for flags.
import t from 'tap';
import { check, type Outcome } from '../src/command.js';

function run(text: string): Promise<Outcome> {
  return check(['f'], () => text);
}

t.test('check judges flags of kubelets by the rules of their file, over the file beside them', async (t) => {
  const kubelet = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
  const findings = async (flags: Readonly<Record<string, string>>, file = ''): Promise<readonly string[]> => {
    const args = Object.entries(flags).map(([name, value]) => ({ name, value }));
    const init = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: ${JSON.stringify(args)}}\n`;
    const { stdout } = await run(file === '' ? init : `${init}---\n${kubelet}${file}`);
    return stdout.split('\n').flatMap((line) => (line.includes(': error: ') ? [line.replace(/^.*\.value: /, '')] : []));
  };
  const rows: readonly (readonly [
    flags: Readonly<Record<string, string>>,
    error: RegExp,
    neighbour: Readonly<Record<string, string>>,
    file?: string,
  ])[] = [
    [
      { 'image-gc-low-threshold': '86' },
      /^--image-gc-low-threshold: "86" must be below/,
      { 'image-gc-low-threshold': '84' },
    ],
    [
      { 'image-gc-low-threshold': '86' },
      /must be below/,
      { 'image-gc-low-threshold': '86', 'image-gc-high-threshold': '90' },
    ],
    [
      { 'image-gc-low-threshold': '96' },
      /must be below/,
      { 'image-gc-low-threshold': '86' },
      'imageGCHighThresholdPercent: 95\n',
    ],
    [
      { 'enforce-node-allocatable': 'system-reserved' },
      /^--enforce-node-allocatable: "system-reserved" has system-reserved, which needs systemReservedCgroup/,
      { 'enforce-node-allocatable': 'system-reserved', 'system-reserved-cgroup': '/a' },
    ],
    [
      { 'enforce-node-allocatable': 'none,pods' },
      /^--enforce-node-allocatable: "none,pods" has none beside others/,
      { 'enforce-node-allocatable': 'none' },
    ],
    [{ runonce: 'true' }, /^--runonce: "true" is a mode that there is no more/, { runonce: 'false' }],
    [
      { 'qos-reserved': 'memory=50%' },
      /^--qos-reserved: .* needs a feature gate that is off/,
      { 'qos-reserved': 'memory=50%', 'feature-gates': 'QOSReserved=true' },
    ],
    [
      { 'log-text-split-stream': 'true' },
      /^--log-text-split-stream: "true" needs a feature gate/,
      { 'log-text-split-stream': 'true', 'feature-gates': 'LoggingAlphaOptions=true' },
    ],
    [
      { 'rotate-server-certificates': 'true', 'feature-gates': 'RotateKubeletServerCertificate=false' },
      /^--rotate-server-certificates: "true" needs a feature gate/,
      { 'rotate-server-certificates': 'true' },
    ],
    [
      { 'eviction-soft': 'memory.available<1Gi' },
      /^--eviction-soft: .* has memory.available, which needs a time/,
      { 'eviction-soft': 'memory.available<1Gi', 'eviction-soft-grace-period': 'memory.available=1m' },
    ],
    [
      { port: '10255', 'read-only-port': '10255' },
      /^--read-only-port: "10255" is the same as port/,
      { port: '10254', 'read-only-port': '10255' },
    ],
    [
      { 'register-with-taints': 'a=b' },
      /^--register-with-taints: "a=b" cannot be read/,
      { 'register-with-taints': 'a=b:NoSchedule,c:NoExecute' },
    ],
    [
      { 'register-with-taints': 'a=b:Never' },
      /^--register-with-taints: "a=b:Never" is not known: should be "NoSchedule"/,
      { 'register-with-taints': 'a=:NoSchedule' },
    ],
    [
      { 'register-with-taints': 'a=b:NoSchedule,a:NoSchedule' },
      /^--register-with-taints: .* is given twice/,
      { 'register-with-taints': 'a=b:NoSchedule,a:NoExecute' },
    ],
    ...['node-role.kubernetes.io/worker=', 'a.k8s.io/b=c', 'kubernetes.io/role=a', 'a', '-=b', 'a=-'].map(
      (label) => [{ 'node-labels': label }, /^--node-labels: .* cannot be read/, { 'node-labels': 'a=b' }] as const,
    ),
    [
      { 'node-labels': 'beta.kubernetes.io/zone=a' },
      /^--node-labels: /,
      {
        'node-labels':
          'beta.kubernetes.io/arch=a,failure-domain.beta.kubernetes.io/zone=b,kubernetes.io/hostname=c,topology.kubernetes.io/region=d,x.node.kubernetes.io/y=,kubelet.kubernetes.io/z=e,mykubernetes.io/a=f,',
      },
    ],
    [
      { 'reserved-memory': '0:memory=1Gi' },
      /^--reserved-memory: "0:memory=1Gi" has 1024Mi of memory, but .* have 100Mi/,
      { 'reserved-memory': '0:memory=50Mi;1:memory=1Gi', 'kube-reserved': 'memory=974Mi' },
    ],
    [
      { 'reserved-memory': '0:memory=1100Mi' },
      /^--reserved-memory: .* have 1224Mi/,
      { 'reserved-memory': '0:memory=1Gi', 'eviction-hard': 'memory.available<0.5Gi', 'kube-reserved': 'memory=512Mi' },
      'kubeReserved: {memory: 1Gi}\nevictionHard: {memory.available: 200Mi}\n',
    ],
    [
      { 'reserved-memory': 'memory=1Gi' },
      /^--reserved-memory: "memory=1Gi" cannot be read: should be NUMA nodes/,
      { 'reserved-memory': '0:memory=100Mi' },
    ],
    [
      { 'reserved-memory': '0:cpu=1' },
      /^--reserved-memory: "0:cpu=1" is not known/,
      { 'reserved-memory': '0:memory=100Mi', 'eviction-hard': 'memory.available<10%' },
    ],
    [
      { 'manifest-url-header': 'S3cr3t' },
      /^--manifest-url-header: cannot be read: should be headers/,
      { 'manifest-url-header': 'Authorization:S3cr3t:x,A:b,A:c' },
    ],
    [
      { 'manifest-url-header': 'S3cr3t x:y' },
      /^--manifest-url-header: has a header whose name is no name/,
      { 'manifest-url-header': 'S3cr3t-x: y' },
    ],
    ...['memory.available=100Mi', 'memory.available>1Gi', 'memory.available'].map(
      (threshold) =>
        [
          { 'eviction-hard': threshold },
          /^--eviction-hard: .* cannot be read: should be thresholds/,
          { 'eviction-hard': 'memory.available<100Mi,nodefs.available<10%' },
        ] as const,
    ),
    [
      { 'eviction-minimum-reclaim': 'memory.available<1Gi' },
      /^--eviction-minimum-reclaim: /,
      { 'eviction-minimum-reclaim': 'memory.available=1Gi' },
    ],
    ...['192.0.2.1,192.0.2.2', '127.0.0.1', '0.0.0.0,::', '192.0.2.1,', 'fe80::1', '224.0.0.1'].map(
      (address) =>
        [{ 'node-ip': address }, /^--node-ip: .* cannot be read/, { 'node-ip': '192.0.2.1,2001:db8::1' }] as const,
    ),
    ...['kubelet-cgroups', 'kube-reserved-cgroup', 'system-reserved-cgroup', 'runtime-cgroups'].map(
      (name) => [{ [name]: 'a.slice' }, /^--.*: "a.slice" cannot be read/, { [name]: '/a.slice' }] as const,
    ),
    [
      { 'container-runtime-endpoint': 'http://a' },
      /^--container-runtime-endpoint: "http:..a" cannot be read/,
      { 'container-runtime-endpoint': 'npipe:////./pipe/containerd', 'image-service-endpoint': 'tcp://127.0.0.1:1' },
    ],
    [{ 'pod-max-pids': '-2' }, /^--pod-max-pids: "-2" is out of range/, { 'pod-max-pids': '-1' }],
    [
      { 'streaming-connection-idle-timeout': '-1s' },
      /^--streaming-connection-idle-timeout: "-1s" cannot be read/,
      { 'streaming-connection-idle-timeout': '0' },
    ],
    [
      { vmodule: 'a=1', 'logging-format': 'json' },
      /^--vmodule: "a=1" must not be given with format json/,
      { vmodule: 'a=1', 'logging-format': 'text' },
    ],
  ];
  for (const [flags, error, neighbour, file] of rows) {
    const found = await findings(flags, file);
    t.equal(found.length, 1, `${JSON.stringify(flags)}: ${found.join('; ')}`);
    t.match(found[0], error);
    t.same(await findings(neighbour, file), [], JSON.stringify(neighbour));
  }
  const broken = 'imageGCLowThresholdPercent: 99\n';
  t.same((await findings({ 'max-pods': '5' }, broken)).length, 1, 'what the file breaks is an error of the file alone');
  const warnings = async (taints: string): Promise<boolean> => {
    const args = [
      { name: 'register-with-taints', value: taints },
      { name: 'register-node', value: 'false' },
    ];
    const init = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: ${JSON.stringify(args)}}\n`;
    return /warning: .*has no effect as registerNode is false/.test((await run(init)).stdout);
  };
  t.same([await warnings('a:NoSchedule'), await warnings('')], [true, false]);
  const again = [50, 50].map((mebibytes, node) => ({
    name: 'reserved-memory',
    value: `${node}:memory=${mebibytes}Mi`,
  }));
  const init = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: ${JSON.stringify(again)}}\n`;
  t.notMatch((await run(init)).stdout, /: error: /, 'a list that is given in parts');
});
