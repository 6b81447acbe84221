// What kubeadm and others write of their own accord is right: of none of it is anything said, alone or together.
import t from 'tap';
import { check } from '../src/command.js';
import {
  CLUSTER,
  CONFIG_MAPS,
  IN_CONTAINERS,
  INIT,
  JOIN,
  KUBELET,
  OLD,
  PROXY,
  RESET,
  UPGRADE,
  WITH_ARGUMENTS,
} from './golden/defaults.js';

const UNSAFE =
  /^f:8: document 1: warning: JoinConfiguration\.discovery\.bootstrapToken\.unsafeSkipCAVerification: true: lets any server answer in place of the control plane\n$/;
/** As the peer says it of itself. */
const NO_RANGE = /^f:\d+: document [14]: warning: KubeProxyConfiguration\.clusterCIDR: is not set, [^\n]*\n$/;

const CASES: readonly (readonly [name: string, texts: readonly string[], reported?: RegExp, release?: string])[] = [
  ['a new cluster with its components, without a pod CIDR', [INIT, CLUSTER, KUBELET, PROXY], NO_RANGE],
  ['a ClusterConfiguration alone', [CLUSTER]],
  ['an InitConfiguration alone', [INIT]],
  ['a KubeletConfiguration alone', [KUBELET]],
  ['a KubeProxyConfiguration alone', [PROXY], NO_RANGE],
  ['a JoinConfiguration, with a warning of unsafe discovery', [JOIN], UNSAFE],
  ['a ResetConfiguration', [RESET]],
  ['an UpgradeConfiguration', [UPGRADE]],
  ['the ConfigMaps in the cluster', Object.values(CONFIG_MAPS).flatMap((data) => Object.values(data))],
  ['before v1beta4', [OLD, KUBELET.replace('crashLoopBackOff: {}\n', ''), PROXY], /^$/, '1.30'],
  ['clusters in containers', [IN_CONTAINERS]],
  ['with arguments for everything', [WITH_ARGUMENTS]],
];

for (const [name, texts, reported = /^$/, release = '1.36'] of CASES)
  t.test(`check accepts the files that kubeadm writes: ${name}`, async (t) => {
    const text = texts.join('\n---\n');
    const { stdout, stderr, status } = await check(['--kubernetes-version', release, 'f'], () => text);
    t.match(stdout, reported);
    t.same([stderr, status], ['', 0]);
  });
