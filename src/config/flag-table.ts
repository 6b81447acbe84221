import { DEFAULT_SERVICE_LIMITS } from '../base/service-limits.js';
import { KUBE_PROXY } from './document.js';
import { DEFAULT_EVENT_RATES } from './event-rates.js';
import { SECURED_FLAGS } from './secured-flags.js';
import type { Flag } from './flag.js';
import { flagsOf } from './tables/settings.js';

/** The rows whose values the code asks for by name, kept literal so that a misspelt name does not compile. */
const PROCESS_FLAGS = [
  {
    name: 'config',
    type: 'string',
    value: 'file',
    help: 'KubeProxyConfiguration file, YAML or JSON, reloaded on change; it replaces every flag except where noted',
    initial: '',
  },
  {
    name: 'config-dir',
    type: 'string',
    value: 'directory',
    help: 'files (*.conf, *.yaml, *.yml, *.json) merged over --config, in name order; maps merge, lists and single values replace',
    initial: '',
  },
  {
    name: 'manifests',
    type: 'list',
    value: 'source',
    help: 'file, directory or URL to read Services, EndpointSlices and Nodes from, in place of the API server unless a kubeconfig or --master is given too; may be repeated',
    initial: '[]',
    url: true,
  },
  {
    name: 'manifests-header',
    type: 'list',
    value: "'[origin ]Name: value'",
    help: "header for requests to the manifest URLs of an origin, 'https://host:port', which may be omitted if there is only one; comma-separated; may be repeated",
    initial: '[]',
    secret: true,
  },
  {
    name: 'manifests-header-file',
    type: 'list',
    value: 'file',
    help: 'such headers, one a line, reread for each request; empty lines and those that begin with # are ignored; may be repeated',
    initial: '[]',
  },
  {
    name: 'manifests-ca-file',
    type: 'list',
    value: "'[origin ]file'",
    help: "CA certificates for an origin's server, in place of the system's; may be repeated",
    initial: '[]',
  },
  {
    name: 'manifests-cert-file',
    type: 'list',
    value: "'[origin ]file'",
    help: 'client certificate for an origin; may be repeated',
    initial: '[]',
  },
  {
    name: 'manifests-key-file',
    type: 'list',
    value: "'[origin ]file'",
    help: "the client certificate's key; may be repeated",
    initial: '[]',
  },
  {
    name: 'file-check-frequency',
    type: 'duration',
    help: 'polling period of manifest files, for changes without an event',
    initial: '900ms',
  },
  {
    name: 'http-check-frequency',
    type: 'duration',
    help: 'period between requests to a manifest URL',
    initial: '10s',
  },
  {
    name: 'status-socket',
    type: 'string',
    value: 'path',
    help: 'Unix socket, or named pipe of Windows, on which `status` and `explain` ask the running process; empty: none',
    initial: process.platform === 'win32' ? '\\\\.\\pipe\\pointsman' : '/run/pointsman/status.sock',
  },
  {
    name: 'tracing-config-file',
    type: 'string',
    value: 'file',
    help: 'TracingConfiguration, read at the start: collector (OTLP over gRPC) and sampling rate of traces; empty: no traces',
    initial: '',
  },
  {
    name: 'egress-selector-config-file',
    type: 'string',
    value: 'file',
    help: 'EgressSelectorConfiguration, read at the start: its controlplane replaces other proxies to the API server; empty: proxies of kubeconfig and environment',
    initial: '',
  },
  {
    name: 'event-qps',
    type: 'float32',
    help: 'events sent a second, once --event-burst is used up; 0: no limit',
    initial: String(DEFAULT_EVENT_RATES.qps),
  },
  {
    name: 'event-burst',
    type: 'int32',
    help: 'events that may be sent at once',
    initial: String(DEFAULT_EVENT_RATES.burst),
  },
  {
    name: 'event-rate-limit-config',
    type: 'string',
    value: 'file',
    help: 'EventRateLimit Configuration, read at the start: further limits; empty: none',
    initial: '',
  },
  {
    name: 'change-log-path',
    type: 'string',
    value: 'file',
    help: 'file for kernel changes and the object versions behind them, as lines of JSON; -: standard output',
    initial: '',
  },
  {
    name: 'change-log-maxsize',
    type: 'int32',
    value: 'MB',
    help: 'as --audit-log-maxsize',
    initial: '0',
  },
  {
    name: 'change-log-maxbackup',
    type: 'int32',
    value: 'files',
    help: 'as --audit-log-maxbackup',
    initial: '0',
  },
  {
    name: 'change-log-maxage',
    type: 'int32',
    value: 'days',
    help: 'as --audit-log-maxage',
    initial: '0',
  },
  {
    name: 'session-affinity-ipv6-prefix',
    type: 'int32',
    value: 'bits',
    help: 'in mode nftables: IPv6 clients whose addresses begin with the same bits are one client to session affinity, 1 to 128',
    initial: '128',
  },
  {
    name: 'balance',
    type: 'string',
    value: 'how',
    help: 'in modes nftables and ipvs: balancing of Services without the annotation pointsman.dev/balance: random, hash=address or hash=address,port',
    initial: 'random',
  },
  {
    name: 'balance-slots-max',
    type: 'int32',
    value: 'slots',
    help: 'in mode nftables: maximum slots per IP family for Services with weights or hashing; the oldest Services get them',
    initial: '262144',
  },
  {
    name: 'reset-removed-endpoints',
    type: 'bool',
    help: 'in mode nftables: reset TCP connections through Services to pods whose address has left all EndpointSlices',
    initial: 'true',
  },
  {
    name: 'connect-retry',
    type: 'duration',
    help: 'in modes nftables and iptables: a TCP connection attempt that its endpoint has not answered for this long goes to another endpoint with the next SYN of the client; whole seconds; 0: it stays',
    initial: '1s',
  },
  {
    name: 'dns-retry',
    type: 'duration',
    help: 'in modes nftables and iptables: the same for datagrams to UDP port 53 of a Service, when the client retries; whole seconds; 0: they stay',
    initial: '2s',
  },
  {
    name: 'service-telemetry',
    type: 'bool',
    help: 'count connections, packets and bytes per Service port, and measure how long its changes take; sets net.netfilter.nf_conntrack_acct',
    initial: 'false',
  },
  {
    name: 'service-telemetry-endpoints',
    type: 'bool',
    help: 'with --service-telemetry: per endpoint, too',
    initial: 'false',
  },
  {
    name: 'service-telemetry-max',
    type: 'int32',
    help: 'with --service-telemetry: how many Service ports, and endpoints, get their own series; the rest are aggregated',
    initial: '1000',
  },
  {
    name: 'service-frontends-max',
    type: 'int32',
    help: 'maximum frontends (ports × addresses) of one Service per IP family; the rest are left out and reported',
    initial: String(DEFAULT_SERVICE_LIMITS.frontends),
  },
  {
    name: 'service-entries-max',
    type: 'int32',
    help: 'maximum endpoints and source ranges of one Service per IP family, summed over its frontends; frontends beyond are left out and reported',
    initial: String(DEFAULT_SERVICE_LIMITS.entries),
  },
  {
    name: 'iptables-flavor',
    type: 'string',
    value: 'auto|legacy|nft',
    help: 'iptables programs of mode iptables; auto: those that this host uses; also with --config',
    initial: 'auto',
  },
  {
    name: 'master',
    type: 'string',
    value: 'URL',
    help: "API server, in place of the kubeconfig's; also with --config",
    initial: '',
    url: true,
  },
  {
    name: 'bootstrap-kubeconfig',
    type: 'string',
    value: 'file',
    help: 'kubeconfig to request a client certificate with, if --kubeconfig is missing or its certificate unusable; --kubeconfig is then written',
    initial: '',
  },
  {
    name: 'rotate-certificates',
    type: 'bool',
    help: 'renew the client certificate in --cert-dir before it expires',
    initial: 'false',
  },
  {
    name: 'signer-name',
    type: 'string',
    value: 'domain/name',
    help: 'signer of client certificates',
    initial: 'kubernetes.io/kube-apiserver-client',
  },
  {
    name: 'init-only',
    type: 'bool',
    help: 'make the kernel settings that need full privileges, check kernel and Node, then exit',
    initial: 'false',
  },
  {
    name: 'cleanup',
    type: 'bool',
    help: 'remove everything this program owns in the kernel, then exit',
    initial: 'false',
  },
  {
    name: 'version',
    type: 'string',
    value: 'true|raw|vX.Y.Z',
    help: 'print the version, all of it with raw, and exit; vX.Y.Z…: report that version instead and go on',
    initial: 'false',
  },
  {
    name: 'write-config-to',
    type: 'string',
    value: 'file',
    help: 'write the effective configuration to a file, then exit',
    initial: '',
  },
  {
    name: 'healthz-port',
    type: 'int32',
    help: 'port of --healthz-bind-address when that has none; 0 disables health checks',
    initial: '10256',
    remark: 'is deprecated, use --healthz-bind-address',
  },
  {
    name: 'metrics-port',
    type: 'int32',
    help: 'port of --metrics-bind-address when that has none',
    initial: '10249',
    remark: 'is deprecated, use --metrics-bind-address',
  },
  {
    name: 'boot-id-file',
    type: 'string',
    help: 'has no effect',
    initial: '/proc/sys/kernel/random/boot_id',
  },
  {
    name: 'machine-id-file',
    type: 'string',
    help: 'has no effect',
    initial: '/etc/machine-id,/var/lib/dbus/machine-id',
  },
] as const satisfies readonly Flag[];

/** Flags that code reads by name. */
export type FlagName =
  | (typeof PROCESS_FLAGS)[number]['name']
  | (typeof SECURED_FLAGS)[number]['name']
  | 'hostname-override'
  | 'healthz-bind-address'
  | 'metrics-bind-address';

/** Flags that set fields of KubeProxyConfiguration, in the order in which they are laid over a document with its defaults. */
export const CONFIGURATION_FLAGS = flagsOf(KUBE_PROXY);

/** Every flag, in alphabetical order. */
export const FLAGS: readonly Flag[] = [...PROCESS_FLAGS, ...SECURED_FLAGS, ...CONFIGURATION_FLAGS].sort((a, b) =>
  a.name < b.name ? -1 : 1,
);
