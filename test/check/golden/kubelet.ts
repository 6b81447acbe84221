import type { Golden } from './golden.js';

export const KUBELET: readonly Golden[] = [
  {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    right: [
      `address: 0.0.0.0
port: 10250
healthzPort: 0
clusterDNS: [10.96.0.10, "fd00::a"]
clusterDomain: cluster.local
featureGates: {A: true}
whoKnows: 1
imageGCHighThresholdPercent: 90
enforceNodeAllocatable: [pods, system-reserved]
systemReservedCgroup: /system
containerLogMaxSize: ""`,
      'port: 0\nreadOnlyPort: 0',
    ],
    wrong: [
      [
        `port: -1
readOnlyPort: 65536
healthzBindAddress: x
clusterDNS: [10.96.0.10, dns, 10.96.0.10]
PodCIDR: 10.0.0.0/8
imageGCLowThresholdPercent: 85
oomScoreAdj: -1001
containerLogMaxFiles: 1
featureGates: {A: yes, B: "on"}
clusterDomain: a..b
hairpinMode: veth
clusterdns: []`,
        'error: KubeletConfiguration.port: -1: is out of range: should be an integer from 1 to 65535',
        'error: KubeletConfiguration.readOnlyPort: 65536: is out of range: should be an integer from 0 to 65535',
        'error: KubeletConfiguration.healthzBindAddress: "x": cannot be read: should be an IP address',
        'error: KubeletConfiguration.clusterDNS[1]: "dns": cannot be read: should be an IP address',
        'error: KubeletConfiguration.clusterDNS[2]: "10.96.0.10": is given twice',
        'error: KubeletConfiguration.clusterDomain: "a..b": cannot be read: should be a DNS name: labels of a-z, 0-9 and "-" with dots between',
        'error: KubeletConfiguration.hairpinMode: "veth": is not known: should be "promiscuous-bridge" or "hairpin-veth" or "none"',
        'error: KubeletConfiguration.featureGates.B: "on": has the wrong type: should be true or false',
        'error: KubeletConfiguration.oomScoreAdj: -1001: is out of range: should be an integer from -1000 to 1000',
        'error: KubeletConfiguration.containerLogMaxFiles: 1: is out of range: should be an integer of at least 2',
        'error: KubeletConfiguration.PodCIDR: has the wrong case: should be podCIDR',
        'error: KubeletConfiguration.clusterdns: has the wrong case: should be clusterDNS',
        'error: KubeletConfiguration.imageGCLowThresholdPercent: 85: must be below imageGCHighThresholdPercent',
      ],
      [
        `port: 10255
readOnlyPort: 10255
enforceNodeAllocatable: [none, pods, kube-reserved]
kubeAPIQPS: -1
KubeAPIBurst: 1
syncFrequency: 60
staticPodURLHeader: {Authorization: S3cr3t}
containerLogMaxSize: ten`,
        'error: KubeletConfiguration.syncFrequency: 60: has the wrong type: should be a duration such as "30s", "1h5m" or "500ms"',
        'error: KubeletConfiguration.staticPodURLHeader.Authorization: has the wrong type: should be a list',
        'error: KubeletConfiguration.kubeAPIQPS: -1: is out of range: should be an integer of at least 0',
        'error: KubeletConfiguration.containerLogMaxSize: "ten": cannot be read: should be a quantity such as "64Ki"',
        'error: KubeletConfiguration.KubeAPIBurst: has the wrong case: should be kubeAPIBurst',
        'error: KubeletConfiguration.enforceNodeAllocatable: has none beside others',
        'error: KubeletConfiguration.enforceNodeAllocatable: has kube-reserved, which needs kubeReservedCgroup',
        'error: KubeletConfiguration.readOnlyPort: 10255: is the same as port',
      ],
      ['port: 0\nreadOnlyPort: 10250', 'error: KubeletConfiguration.readOnlyPort: 10250: is the same as port'],
    ],
  },
];
