import { familyOf, parsePrefix, prefixLength, type IPPrefix } from '../../../../src/base/ip.js';
import { printValue } from '../../../../src/config/errors.js';
import { alone, exclusive, needs, rule, someOf } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  field,
  int,
  intOrZero,
  list,
  map,
  oneOf,
  path,
  required,
  struct,
  text,
  type Field,
  type KindTable,
  type StructType,
  type Type,
} from '../../../../src/config/tables/types.js';
import { API_SERVER_FLAGS, CONTROLLER_MANAGER_FLAGS, SCHEDULER_FLAGS } from './control-plane-flags.js';
import { flagsOf, truthOf } from './flags.js';
import { KUBELET_FLAGS } from './kubelet-flags.js';
import { KUBELET_SYNTAXES } from './kubelet-syntax.js';
import { NODE_TAINT } from './kubelet.js';

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
/** kubeadm looks for them when it runs, maybe from another directory. */
const UPGRADE_PATCHES = struct({ directory: required(scalar('absolute path')) });

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
  rule('requires', (section) => {
    const usages = section.texts('usages');
    if (usages.length === 0 || usages.includes('authentication')) return;
    if (section.has('groups')) section.refuse('requires', 'groups', 'needs authentication among usages');
    else section.refuse('requires', 'usages', 'needs authentication, as kubeadm gives tokens a group');
  }),
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

const OBJECT_KEY = struct({ name: text, key: required(text), optional: bool });

/** Where the value of a variable is, as in a container of a pod. */
const SOURCE = struct({
  fieldRef: struct({ apiVersion: text, fieldPath: required(text) }),
  resourceFieldRef: struct({ containerName: text, resource: required(text), divisor: scalar('quantity') }),
  configMapKeyRef: OBJECT_KEY,
  secretKeyRef: OBJECT_KEY,
  fileKeyRef: struct({ volumeName: required(text), path: required(path), key: required(text), optional: bool }),
});

const ENVIRONMENT = list(
  struct(
    { name: required(text), value: field(text, { secret: true }), valueFrom: SOURCE },
    exclusive('value', 'valueFrom'),
  ),
);

function argumentsOf(version: Version): Type {
  return version === 'v1beta3' ? map(text) : list(struct({ name: required(text), value: text }));
}

/** kubeadm puts the scheme before a path itself, and warns that a node agent may not take such a one for ever. */
const SOCKET_SCHEME = rule('deprecated', (section) => {
  const socket = section.text('criSocket');
  if (socket.startsWith('tcp://'))
    section.warn('deprecated', 'criSocket', 'is a scheme that kubeadm takes on Windows only');
  if (socket.startsWith('/'))
    section.warn(
      'deprecated',
      'criSocket',
      'has no scheme: kubeadm adds it, and warns',
      printValue(`unix://${socket}`),
    );
});

const NODE_FLAGS = flagsOf('kubeletExtraArgs', KUBELET_FLAGS, KUBELET_SYNTAXES);

function nodeRegistration(version: Version): StructType {
  return struct(
    {
      name: scalar('machine name'),
      criSocket: scalar('runtime socket'),
      taints: list(NODE_TAINT),
      kubeletExtraArgs: argumentsOf(version),
      ignorePreflightErrors: texts,
      imagePullPolicy: field(PULL_POLICY, { default: 'IfNotPresent' }),
      imagePullSerial: added(bool),
    },
    alone('ignorePreflightErrors', 'all'),
    SOCKET_SCHEME,
    NODE_FLAGS,
  );
}

function component(version: Version, flags: StructType['fields'], more: StructType['fields'] = {}): StructType {
  return struct(
    {
      extraArgs: argumentsOf(version),
      extraVolumes: list(VOLUME),
      extraEnvs: added(ENVIRONMENT),
      ...more,
    },
    flagsOf('extraArgs', flags),
  );
}

const IMAGE = { imageRepository: scalar('image repository'), imageTag: text };

/** With certificates all of etcd's clients use TLS. */
const ENDPOINT_SCHEMES = rule('tls', (section) => {
  const isSecure = ['caFile', 'certFile', 'keyFile'].some((name) => section.has(name));
  for (const [index, endpoint] of section.texts('endpoints').entries())
    if (isSecure && !endpoint.startsWith('https:'))
      section.refuse('tls', `endpoints[${index}]`, 'must begin with https:// beside certificates');
});

/** Bits that addresses of Services may have, and of a range of pods for the ranges of nodes in it. */
const MAX_SERVICE_BITS = 20;
const MAX_NODE_BITS = 16;
/** The default length of a node's prefix. */
const NODE_PREFIX = { IPv4: 24, IPv6: 64 } as const;

/** What kubeadm makes of the ranges of Services and pods. */
const SUBNETS = rule('range', (section) => {
  const networking = section.section('networking');
  const manager = section.section('controllerManager');
  if (networking === null) return;
  for (const [name, prefix] of prefixesIn(networking, 'serviceSubnet')) {
    const bits = bitsOf(prefix) - prefixLength(prefix);
    if (bits > MAX_SERVICE_BITS)
      networking.refuse('range', name, 'is too large', `a prefix of at least ${bitsOf(prefix) - MAX_SERVICE_BITS}`);
    if (bits < 4) networking.refuse('range', name, 'is too small', 'at least 16 addresses');
  }
  if (truthOf(argumentOf(manager, 'allocate-node-cidrs')) === false) return;
  for (const [name, prefix] of prefixesIn(networking, 'podSubnet')) {
    const family = familyOf(prefix);
    const given = argumentOf(manager, `node-cidr-mask-size-${family.toLowerCase()}`);
    const node = given === '' ? NODE_PREFIX[family] : Number(given);
    const length = prefixLength(prefix);
    if (length > node) networking.refuse('range', name, `has no room for a node, whose prefix is ${node}`);
    else if (node - length > MAX_NODE_BITS)
      networking.refuse(
        'range',
        name,
        'is too large',
        `a prefix of at least ${node - MAX_NODE_BITS} for nodes' ${node}`,
      );
  }
});

function prefixesIn(section: Section, name: string): readonly (readonly [name: string, prefix: IPPrefix])[] {
  return section
    .text(name)
    .split(',')
    .flatMap((entry) => {
      const prefix = parsePrefix(entry);
      return prefix === null ? [] : [[name, prefix] as const];
    });
}

function bitsOf(prefix: IPPrefix): number {
  return familyOf(prefix) === 'IPv4' ? 32 : 128;
}

/** Of a map, or of a list, whose last one counts. */
function argumentOf(component: Section | null, name: string): string {
  const map = component?.section('extraArgs') ?? null;
  if (map !== null) return map.text(name);
  return (
    component
      ?.sections('extraArgs')
      .findLast((each) => each.text('name') === name)
      ?.text('value') ?? ''
  );
}

/** Without them nodes and kubeadm's own components are not admitted. */
const AUTHORIZERS = rule('authorization', (section) => {
  const modes = argumentOf(section.section('apiServer'), 'authorization-mode');
  const missing = ['Node', 'RBAC'].filter((mode) => !modes.split(',').includes(mode));
  if (modes !== '' && missing.length > 0)
    section.refuse(
      'authorization',
      'apiServer.extraArgs',
      `has authorization-mode ${printValue(modes)} without ${missing.join(' and ')}`,
    );
});

/** kubeadm's own, which are others than those of components. */
const KUBEADM_GATES: readonly { readonly name: string; readonly removed?: number }[] = [
  { name: 'PublicKeysECDSA', removed: 37 },
  { name: 'RootlessControlPlane' },
  { name: 'NodeLocalCRISocket', removed: 37 },
];
/** Releases that these gates are known of. */
const GATES_KNOWN = [36, 37];
const OWN_GATES = rule('feature-gate', (section) => {
  const { release } = section;
  const gates = section.section('featureGates');
  for (const name of GATES_KNOWN.includes(release) ? (gates?.names() ?? []) : []) {
    const known = KUBEADM_GATES.find((gate) => gate.name === name);
    if (known === undefined) gates?.refuse('feature-gate', name, 'is no feature gate of kubeadm');
    else if (known.removed !== undefined && release >= known.removed)
      gates?.refuse('feature-gate', name, `is gone since Kubernetes 1.${known.removed}`);
  }
});

/** A certificate lives no longer than the authority that signed it. */
const VALIDITY = rule('order', (section) => {
  const [own, authority] = ['certificateValidityPeriod', 'caCertificateValidityPeriod'].map((name) =>
    section.milliseconds(name),
  );
  if (typeof own === 'number' && typeof authority === 'number' && own > authority)
    section.warn('order', 'certificateValidityPeriod', 'is above caCertificateValidityPeriod');
});

function etcd(version: Version): StructType {
  const local = struct({
    ...IMAGE,
    dataDir: field(scalar('absolute path'), { default: '/var/lib/etcd' }),
    extraArgs: argumentsOf(version),
    extraEnvs: added(ENVIRONMENT),
    serverCertSANs: list(scalar('alternative name')),
    peerCertSANs: list(scalar('alternative name')),
  });
  const external = struct(
    {
      endpoints: required(list(scalar('http url'), { min: 1 })),
      httpEndpoints: field(list(scalar('http url')), { versions: NEW, since: 35 }),
      caFile: scalar('absolute path'),
      certFile: scalar('absolute path'),
      keyFile: scalar('absolute path'),
    },
    needs('certFile', 'keyFile'),
    needs('keyFile', 'certFile'),
    needs('certFile', 'caFile'),
    ENDPOINT_SCHEMES,
  );
  return struct({ local, external }, exclusive('local', 'external'));
}

function cluster(version: Version): StructType {
  const disabled = added(bool);
  return struct(
    {
      etcd: etcd(version),
      networking: struct({
        serviceSubnet: field(scalar('cidrs'), { default: '10.96.0.0/12' }),
        podSubnet: scalar('cidrs'),
        dnsDomain: field(scalar('dns name'), { default: 'cluster.local' }),
      }),
      kubernetesVersion: scalar('version or label'),
      controlPlaneEndpoint: scalar('host'),
      apiServer: component(version, API_SERVER_FLAGS, {
        certSANs: list(scalar('alternative name')),
        timeoutForControlPlane: field(period, {
          versions: OLD,
          deprecated: 'timeouts.controlPlaneComponentHealthCheck of v1beta4',
        }),
      }),
      controllerManager: component(version, CONTROLLER_MANAGER_FLAGS),
      scheduler: component(version, SCHEDULER_FLAGS),
      dns: struct({ ...IMAGE, disabled }),
      proxy: added(struct({ disabled: bool })),
      certificatesDir: scalar('absolute path'),
      imageRepository: scalar('image repository'),
      featureGates: map(bool),
      clusterName: text,
      encryptionAlgorithm: added(oneOf('RSA-2048', 'RSA-3072', 'RSA-4096', 'ECDSA-P256', 'ECDSA-P384')),
      certificateValidityPeriod: added(scalar('duration above 0')),
      caCertificateValidityPeriod: added(scalar('duration above 0')),
    },
    AUTHORIZERS,
    SUBNETS,
    OWN_GATES,
    VALIDITY,
  );
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

/** A joining node trusts the cluster's authority by its hash, or states that it does not check it. */
const PINS_AUTHORITY = rule('authority', (section) => {
  if (!section.has('caCertHashes') && !section.truth('unsafeSkipCAVerification'))
    section.refuse('authority', 'caCertHashes', 'is missing', 'given, or unsafeSkipCAVerification true');
});

const UNSAFE = rule('authority', (section) => {
  if (section.truth('unsafeSkipCAVerification'))
    section.warn('authority', 'unsafeSkipCAVerification', 'lets any server answer in place of the control plane');
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
    file: struct({ kubeConfigPath: required(scalar('file or https url')) }),
    tlsBootstrapToken: field(scalar('bootstrap token'), { secret: true }),
    timeout: field(period, { versions: OLD, deprecated: 'timeouts.discovery of v1beta4' }),
  },
  exclusive('bootstrapToken', 'file'),
  someOf('bootstrapToken', 'file'),
);

function join(version: Version): StructType {
  return struct({
    dryRun: added(bool),
    nodeRegistration: nodeRegistration(version),
    caCertPath: field(scalar('certificate path'), { default: '/etc/kubernetes/pki/ca.crt' }),
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
  patches: UPGRADE_PATCHES,
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
const SERVED = { v1beta3: { since: 22, deprecated: 31, removed: 37 }, v1beta4: { since: 31 } } as const;

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
