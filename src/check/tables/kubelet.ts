import { alone, atMost, rule } from '../../config/tables/rules.js';
import {
  bool,
  field,
  int,
  intOrZero,
  list,
  map,
  oneOf,
  partial,
  path,
  scalar,
  text,
  type KindTable,
} from '../../config/tables/types.js';

/** The node agent's document: the fields that a proxy has to do with, and those with limits that are easily broken. The rest is passed over. */

const period = scalar('duration');
const port = int(0, 65_535);

const RESERVED = ['system-reserved', 'kube-reserved'] as const;
const COMPRESSIBLE = RESERVED.map((level) => `${level}-compressible`);

/** Each reserved level that is enforced needs its cgroup. */
const RESERVED_CGROUPS = rule('requires', (section) => {
  const levels = section.texts('enforceNodeAllocatable');
  for (const level of RESERVED) {
    const cgroup = level === 'system-reserved' ? 'systemReservedCgroup' : 'kubeReservedCgroup';
    const isEnforced = levels.includes(level) || levels.includes(`${level}-compressible`);
    if (isEnforced && !section.has(cgroup))
      section.refuse('requires', 'enforceNodeAllocatable', `has ${level}, which needs ${cgroup}`);
  }
});

/** Zero, which is no port, does not count. */
const OWN_PORTS = rule('ports', (section) => {
  const [own, readOnly] = [section.number('port'), section.number('readOnlyPort')];
  if (own !== null && own === readOnly) section.refuse('ports', 'readOnlyPort', 'is the same as port');
});

export const KUBELET: readonly KindTable[] = [
  {
    kind: 'KubeletConfiguration',
    group: 'kubelet.config.k8s.io',
    versions: { v1beta1: {} },
    table: partial(
      {
        address: field(scalar('ip'), { default: '0.0.0.0' }),
        port: field(intOrZero(1, 65_535), { default: 10_250 }),
        readOnlyPort: field(port, { default: 0 }),
        healthzBindAddress: field(scalar('ip'), { default: '127.0.0.1' }),
        healthzPort: field(port, { default: 10_248 }),
        clusterDNS: list(scalar('ip'), { unique: '' }),
        clusterDomain: scalar('dns name'),
        podCIDR: scalar('cidrs'),
        resolvConf: path,
        hairpinMode: oneOf('promiscuous-bridge', 'hairpin-veth', 'none'),
        makeIPTablesUtilChains: field(bool, { default: true }),
        featureGates: map(bool),
        syncFrequency: period,
        fileCheckFrequency: period,
        httpCheckFrequency: period,
        staticPodURLHeader: field(map(list(text)), { secret: true }),
        nodeStatusUpdateFrequency: scalar('duration, not negative'),
        streamingConnectionIdleTimeout: period,
        runtimeRequestTimeout: period,
        tlsMinVersion: oneOf('VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'),
        authorization: partial({ mode: oneOf('AlwaysAllow', 'Webhook') }),
        registryPullQPS: int(0),
        registryBurst: int(0),
        eventRecordQPS: int(0),
        eventBurst: int(0),
        kubeAPIQPS: int(0),
        kubeAPIBurst: int(0),
        maxPods: int(0),
        podsPerCore: int(0),
        podPidsLimit: scalar('int'),
        oomScoreAdj: int(-1000, 1000),
        imageGCHighThresholdPercent: field(int(0, 100), { default: 85 }),
        imageGCLowThresholdPercent: field(int(0, 100), { default: 80 }),
        containerLogMaxFiles: int(2),
        containerLogMaxSize: field(scalar('quantity'), { mayBeEmpty: true }),
        cgroupDriver: oneOf('cgroupfs', 'systemd'),
        cpuManagerPolicy: oneOf('none', 'static'),
        memoryManagerPolicy: oneOf('None', 'Static'),
        topologyManagerPolicy: oneOf('none', 'best-effort', 'restricted', 'single-numa-node'),
        topologyManagerScope: oneOf('container', 'pod'),
        enforceNodeAllocatable: list(oneOf('none', 'pods', ...RESERVED, ...COMPRESSIBLE)),
        systemReservedCgroup: path,
        kubeReservedCgroup: path,
      },
      atMost('imageGCLowThresholdPercent', 'imageGCHighThresholdPercent', 'strictly'),
      alone('enforceNodeAllocatable', 'none'),
      RESERVED_CGROUPS,
      OWN_PORTS,
    ),
  },
];
