import type { Flag } from '../config/flag.js';
import { FLAGS } from '../config/flag-table.js';

/** Flags of the proxy with one purpose. */
interface FlagGroup {
  readonly title: string;
  readonly flags: readonly Flag[];
}

/** Names, and beginnings of names that end with a hyphen. A flag is in the first group that has it. */
const GROUPS: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['What the process does', ['cleanup', 'init-only', 'write-config-to', 'version', 'windows-service', 'oom-score-adj']],
  [
    'Configuration',
    [
      'config',
      'config-dir',
      'mode',
      'proxy-mode',
      'feature-gates',
      'hostname-override',
      'bind-address',
      'bind-address-hard-fail',
    ],
  ],
  [
    'API server',
    [
      'kubeconfig',
      'master',
      'kube-api-',
      'config-sync-period',
      'egress-selector-config-file',
      'bootstrap-kubeconfig',
      'rotate-certificates',
      'signer-name',
      'event-',
    ],
  ],
  ['Manifests', ['manifests', 'manifests-', 'file-check-frequency', 'http-check-frequency']],
  [
    'Services',
    [
      'cluster-cidr',
      'detect-local-mode',
      'pod-bridge-interface',
      'pod-interface-name-prefix',
      'nodeport-addresses',
      'masquerade-all',
      'external-ips-in-cluster-ranges',
      'session-affinity-ipv6-prefix',
      'service-frontends-max',
      'service-entries-max',
      'balance',
      'balance-',
      'connect-retry',
      'dns-retry',
      'reset-removed-endpoints',
    ],
  ],
  ['Modes', ['iptables-', 'ipvs-']],
  ['Connection tracking', ['conntrack-']],
  [
    'Health, metrics and commands',
    [
      'healthz-',
      'metrics-bind-address',
      'metrics-port',
      'profiling',
      'show-hidden-metrics-for-version',
      'status-socket',
      'service-telemetry',
      'service-telemetry-',
      'tracing-config-file',
      'change-log-',
    ],
  ],
  [
    'Access to the metrics address',
    [
      'metrics-tls',
      'tls-',
      'cert-dir',
      'client-ca-file',
      'authentication-',
      'authorization-',
      'anonymous-auth',
      'audit-',
    ],
  ],
  ['Log', ['v', 'vmodule', 'logging-format', 'log-']],
  ['Windows', ['network-name', 'source-vip', 'enable-dsr', 'root-hnsendpoint-name', 'forward-healthcheck-vip']],
  ['No effect', ['boot-id-file', 'machine-id-file']],
];

/** The flags of the proxy, grouped by purpose. */
export function flagGroups(flags: readonly Flag[] = FLAGS): readonly FlagGroup[] {
  const left = new Set(flags);
  const take = (isOf: (flag: Flag) => boolean): readonly Flag[] => {
    const taken = [...left].filter(isOf);
    for (const flag of taken) left.delete(flag);
    return taken;
  };
  const groups = GROUPS.map(([title, names]) => ({
    title,
    flags: take(({ name }) => names.some((each) => name === each || (each.endsWith('-') && name.startsWith(each)))),
  }));
  // A test makes sure that there are none.
  groups.push({ title: 'Other', flags: take(() => true) });
  return groups.filter((group) => group.flags.length > 0);
}
