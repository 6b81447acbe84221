import { printValue } from '../../config/errors.js';
import { alone, exclusive, needs, rule, someOf } from '../../config/tables/rules.js';
import {
  any,
  bool,
  field,
  int,
  intOrZero,
  list,
  map,
  oneOf,
  path,
  required,
  scalar,
  struct,
  text,
  type Field,
  type KindTable,
  type StructType,
  type Type,
} from '../../config/tables/types.js';

/** kubeadm's documents. v1beta4 replaces maps of arguments by lists and timeouts of single parts by one section, and has more kinds. */

type Version = 'v1beta3' | 'v1beta4';

const NEW = ['v1beta4'];
const OLD = ['v1beta3'];

/** A field that v1beta4 brought. */
function added(type: Type): Field {
  return field(type, { versions: NEW });
}

const period = scalar('duration, not negative');
const texts = list(text);
const addresses = list(scalar('host'));

const TIMEOUTS = struct({
  controlPlaneComponentHealthCheck: period,
  kubeletHealthCheck: period,
  kubernetesAPICall: period,
  etcdAPICall: period,
  tlsBootstrap: period,
  discovery: period,
  upgradeManifests: period,
});

const PULL_POLICY = oneOf('Always', 'Never', 'IfNotPresent');
const PATCHES = struct({ directory: path });

const BOOTSTRAP_TOKEN = struct(
  {
    token: required(scalar('bootstrap token'), { secret: true }),
    description: text,
    ttl: period,
    expires: scalar('timestamp'),
    usages: list(oneOf('signing', 'authentication')),
    groups: list(scalar('bootstrap group')),
  },
  exclusive('ttl', 'expires'),
);

const API_ENDPOINT = struct({
  advertiseAddress: scalar('ip'),
  bindPort: field(intOrZero(1, 65_535), { default: 6443 }),
});

const VOLUME = struct({
  name: required(text),
  hostPath: required(path),
  mountPath: required(path),
  readOnly: bool,
  pathType: oneOf('DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'),
});

const ENVIRONMENT = list(
  struct(
    { name: required(text), value: field(text, { secret: true }), valueFrom: any },
    exclusive('value', 'valueFrom'),
  ),
);

const TAINT = struct({
  key: required(text),
  value: text,
  effect: required(oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute')),
  timeAdded: scalar('timestamp'),
});

function argumentsOf(version: Version): Type {
  return version === 'v1beta3' ? map(text) : list(struct({ name: required(text), value: text }));
}

/** kubeadm puts the scheme before a path itself, and warns that a node agent may not take such a one for ever. */
const SOCKET_SCHEME = rule('deprecated', (section) => {
  const socket = section.text('criSocket');
  if (socket.startsWith('/'))
    section.warn(
      'deprecated',
      'criSocket',
      'has no scheme: kubeadm adds it, and warns',
      printValue(`unix://${socket}`),
    );
});

function nodeRegistration(version: Version): StructType {
  return struct(
    {
      name: scalar('node name'),
      criSocket: scalar('runtime socket'),
      taints: list(TAINT),
      kubeletExtraArgs: argumentsOf(version),
      ignorePreflightErrors: texts,
      imagePullPolicy: field(PULL_POLICY, { default: 'IfNotPresent' }),
      imagePullSerial: added(bool),
    },
    alone('ignorePreflightErrors', 'all'),
    SOCKET_SCHEME,
  );
}

function component(version: Version, more: StructType['fields'] = {}): StructType {
  return struct({
    extraArgs: argumentsOf(version),
    extraVolumes: list(VOLUME),
    extraEnvs: added(ENVIRONMENT),
    ...more,
  });
}

const IMAGE = { imageRepository: text, imageTag: text };

function etcd(version: Version): StructType {
  const local = struct({
    ...IMAGE,
    dataDir: field(scalar('absolute path'), { default: '/var/lib/etcd' }),
    extraArgs: argumentsOf(version),
    extraEnvs: added(ENVIRONMENT),
    serverCertSANs: addresses,
    peerCertSANs: addresses,
  });
  const external = struct(
    {
      endpoints: required(list(scalar('http url'), { min: 1 })),
      caFile: path,
      certFile: path,
      keyFile: path,
    },
    needs('certFile', 'keyFile'),
    needs('keyFile', 'certFile'),
  );
  return struct({ local, external }, exclusive('local', 'external'));
}

function cluster(version: Version): StructType {
  const disabled = added(bool);
  return struct({
    etcd: etcd(version),
    networking: struct({
      serviceSubnet: field(scalar('cidrs'), { default: '10.96.0.0/12' }),
      podSubnet: scalar('cidrs'),
      dnsDomain: field(scalar('dns name'), { default: 'cluster.local' }),
    }),
    kubernetesVersion: scalar('version'),
    controlPlaneEndpoint: scalar('host'),
    apiServer: component(version, {
      certSANs: list(text),
      timeoutForControlPlane: field(period, {
        versions: OLD,
        deprecated: 'timeouts.controlPlaneComponentHealthCheck of v1beta4',
      }),
    }),
    controllerManager: component(version),
    scheduler: component(version),
    dns: struct({ ...IMAGE, disabled }),
    proxy: added(struct({ disabled: bool })),
    certificatesDir: scalar('absolute path'),
    imageRepository: text,
    featureGates: map(bool),
    clusterName: text,
    encryptionAlgorithm: added(oneOf('RSA-2048', 'RSA-3072', 'RSA-4096', 'ECDSA-P256', 'ECDSA-P384')),
    certificateValidityPeriod: added(scalar('duration above 0')),
    caCertificateValidityPeriod: added(scalar('duration above 0')),
  });
}

function init(version: Version): StructType {
  return struct({
    bootstrapTokens: list(BOOTSTRAP_TOKEN),
    dryRun: added(bool),
    nodeRegistration: nodeRegistration(version),
    localAPIEndpoint: API_ENDPOINT,
    certificateKey: field(scalar('certificate key'), { secret: true }),
    skipPhases: texts,
    patches: PATCHES,
    timeouts: added(TIMEOUTS),
  });
}

/** A joining node trusts the cluster's authority by its hash, or says that it does not check it. */
const PINS_AUTHORITY = rule('authority', (section) => {
  if (!section.has('caCertHashes') && !section.truth('unsafeSkipCAVerification'))
    section.refuse('authority', 'caCertHashes', 'is missing', 'given, or unsafeSkipCAVerification true');
});

const UNSAFE = rule('authority', (section) => {
  if (section.truth('unsafeSkipCAVerification'))
    section.warn('authority', 'unsafeSkipCAVerification', 'lets anybody answer in place of the control plane');
});

const DISCOVERY = struct(
  {
    bootstrapToken: struct(
      {
        token: required(scalar('bootstrap token'), { secret: true }),
        apiServerEndpoint: required(scalar('host:port')),
        caCertHashes: list(scalar('ca hash')),
        unsafeSkipCAVerification: bool,
      },
      PINS_AUTHORITY,
      UNSAFE,
    ),
    file: struct({ kubeConfigPath: required(path) }),
    tlsBootstrapToken: field(text, { secret: true }),
    timeout: field(period, { versions: OLD, deprecated: 'timeouts.discovery of v1beta4' }),
  },
  exclusive('bootstrapToken', 'file'),
  someOf('bootstrapToken', 'file'),
);

function join(version: Version): StructType {
  return struct({
    dryRun: added(bool),
    nodeRegistration: nodeRegistration(version),
    caCertPath: field(scalar('absolute path'), { default: '/etc/kubernetes/pki/ca.crt' }),
    discovery: required(DISCOVERY),
    controlPlane: struct({
      localAPIEndpoint: API_ENDPOINT,
      certificateKey: field(scalar('certificate key'), { secret: true }),
    }),
    skipPhases: texts,
    patches: PATCHES,
    timeouts: added(TIMEOUTS),
  });
}

const RESET = struct(
  {
    certificatesDir: scalar('absolute path'),
    cleanupTmpDir: bool,
    criSocket: scalar('runtime socket'),
    dryRun: bool,
    force: bool,
    ignorePreflightErrors: texts,
    skipPhases: texts,
    unmountFlags: list(oneOf('MNT_FORCE', 'MNT_DETACH', 'MNT_EXPIRE', 'UMOUNT_NOFOLLOW')),
    timeouts: TIMEOUTS,
  },
  alone('ignorePreflightErrors', 'all'),
  SOCKET_SCHEME,
);

const CHOICE = {
  kubernetesVersion: scalar('version'),
  allowExperimentalUpgrades: bool,
  allowRCUpgrades: bool,
};
const STEP = {
  certificateRenewal: bool,
  dryRun: bool,
  etcdUpgrade: bool,
  ignorePreflightErrors: texts,
  patches: PATCHES,
  skipPhases: texts,
  imagePullPolicy: PULL_POLICY,
  imagePullSerial: bool,
};

const UPGRADE = struct({
  apply: struct({ ...CHOICE, ...STEP, forceUpgrade: bool, printConfig: bool }, alone('ignorePreflightErrors', 'all')),
  diff: struct({ kubernetesVersion: scalar('version'), contextLines: int(0) }),
  node: struct(STEP, alone('ignorePreflightErrors', 'all')),
  plan: struct(
    {
      ...CHOICE,
      dryRun: bool,
      etcdUpgrade: field(bool, { since: 33 }),
      ignorePreflightErrors: texts,
      printConfig: bool,
    },
    alone('ignorePreflightErrors', 'all'),
  ),
  timeouts: TIMEOUTS,
});

const GROUP = 'kubeadm.k8s.io';
const SERVED = { v1beta3: { since: 22, deprecated: 31 }, v1beta4: { since: 31 } } as const;

function inVersions(kind: string, table: (version: Version) => StructType): readonly KindTable[] {
  return (['v1beta3', 'v1beta4'] as const).map((version) => ({
    kind,
    group: GROUP,
    versions: { [version]: SERVED[version] },
    table: table(version),
  }));
}

export const KUBEADM: readonly KindTable[] = [
  ...inVersions('InitConfiguration', init),
  ...inVersions('ClusterConfiguration', cluster),
  ...inVersions('JoinConfiguration', join),
  { kind: 'ResetConfiguration', group: GROUP, versions: { v1beta4: SERVED.v1beta4 }, table: RESET },
  { kind: 'UpgradeConfiguration', group: GROUP, versions: { v1beta4: SERVED.v1beta4 }, table: UPGRADE },
];
