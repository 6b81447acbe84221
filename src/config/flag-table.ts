import { DEFAULT_SERVICE_LIMITS } from '../base/service-limits.js';
import { KUBE_PROXY } from './document.js';
import { DEFAULT_EVENT_RATES } from './event-rates.js';
import { SECURED_FLAGS } from './secured-flags.js';
import { bool, int, row, text, type Flag } from './flag.js';
import { flagsOf } from './tables/settings.js';

/** The rows whose values the code asks for by name, kept literal so that a misspelt name does not compile. */
const PROCESS_FLAGS = [
  text(
    'config',
    'file',
    'KubeProxyConfiguration file, YAML or JSON, reloaded on change; it replaces every flag except where noted',
  ),
  text(
    'config-dir',
    'directory',
    'files (*.conf, *.yaml, *.yml, *.json) merged over --config, in name order; maps merge, lists and single values replace',
  ),
  text(
    'mode',
    'mode',
    'proxy mode: iptables (also if empty), ipvs or nftables; also with a --config that sets no mode',
  ),
  row(
    'manifests',
    'list',
    'file, directory or URL to read Services, EndpointSlices and Nodes from, in place of the API server unless a kubeconfig or --master is given too; may be repeated',
    '[]',
    { value: 'source', url: true },
  ),
  row(
    'manifests-header',
    'list',
    "header for requests to the manifest URLs of an origin, 'https://host:port', which may be omitted if there is only one; comma-separated; may be repeated",
    '[]',
    { value: "'[origin ]Name: value'", secret: true },
  ),
  row(
    'manifests-header-file',
    'list',
    'such headers, one a line, reread for each request; empty lines and those that begin with # are ignored; may be repeated',
    '[]',
    { value: 'file' },
  ),
  row(
    'manifests-ca-file',
    'list',
    "CA certificates for an origin's server, in place of the system's; may be repeated",
    '[]',
    { value: "'[origin ]file'" },
  ),
  row('manifests-cert-file', 'list', 'client certificate for an origin; may be repeated', '[]', {
    value: "'[origin ]file'",
  }),
  row('manifests-key-file', 'list', "the client certificate's key; may be repeated", '[]', {
    value: "'[origin ]file'",
  }),
  row('file-check-frequency', 'duration', 'polling period of manifest files, for changes without an event', '900ms'),
  row('http-check-frequency', 'duration', 'period between requests to a manifest URL', '10s'),
  text(
    'status-socket',
    'path',
    'Unix socket, or named pipe of Windows, on which `status` and `explain` ask the running process; empty: none',
    process.platform === 'win32' ? '\\\\.\\pipe\\pointsman' : '/run/pointsman/status.sock',
  ),
  text(
    'tracing-config-file',
    'file',
    'TracingConfiguration, read at the start: collector (OTLP over gRPC) and sampling rate of traces; empty: no traces',
  ),
  text(
    'egress-selector-config-file',
    'file',
    'EgressSelectorConfiguration, read at the start: its controlplane replaces other proxies to the API server; empty: proxies of kubeconfig and environment',
  ),
  row(
    'event-qps',
    'float32',
    'events sent a second, once --event-burst is used up; 0: no limit',
    String(DEFAULT_EVENT_RATES.qps),
  ),
  int('event-burst', 'events that may be sent at once', String(DEFAULT_EVENT_RATES.burst)),
  text(
    'event-rate-limit-config',
    'file',
    'EventRateLimit Configuration, read at the start: further limits; empty: none',
  ),
  text(
    'change-log-path',
    'file',
    'file for kernel changes and the object versions behind them, as lines of JSON; -: standard output',
  ),
  int('change-log-maxsize', 'as --audit-log-maxsize', '0', { value: 'MB' }),
  int('change-log-maxbackup', 'as --audit-log-maxbackup', '0', { value: 'files' }),
  int('change-log-maxage', 'as --audit-log-maxage', '0', { value: 'days' }),
  int(
    'session-affinity-ipv6-prefix',
    'in mode nftables: IPv6 clients whose addresses begin with the same bits are one client to session affinity, 1 to 128',
    '128',
    { value: 'bits' },
  ),
  text(
    'balance',
    'how',
    'in modes nftables and ipvs: balancing of Services without the annotation pointsman.dev/balance: random, hash=address or hash=address,port',
    'random',
  ),
  int(
    'balance-slots-max',
    'in mode nftables: maximum slots per IP family for Services with weights or hashing; each namespace has a share',
    '262144',
    { value: 'slots' },
  ),
  bool(
    'external-ips-in-cluster-ranges',
    'serve external IPs and load balancer addresses within the ranges of Services and pods, and external IPs that are another Service’s cluster IP',
  ),
  row(
    'reset-removed-endpoints',
    'bool',
    'in mode nftables: reset TCP connections through Services to pods whose address has left all EndpointSlices',
    'true',
  ),
  row(
    'connect-retry',
    'duration',
    'in modes nftables and iptables: a TCP connection attempt that its endpoint has not answered for this long goes to another endpoint with the next SYN of the client; whole seconds; 0: it stays',
    '1s',
  ),
  row(
    'dns-retry',
    'duration',
    'in modes nftables and iptables: the same for queries to UDP port 53 of a Service, when the client repeats them; an answer that takes longer is lost; whole seconds; 0: they stay',
    '4s',
  ),
  bool(
    'service-telemetry',
    'count connections, packets and bytes per Service port, and measure how long its changes take; sets net.netfilter.nf_conntrack_acct',
  ),
  bool('service-telemetry-endpoints', 'with --service-telemetry: per endpoint, too'),
  int(
    'service-telemetry-max',
    'with --service-telemetry: how many Service ports, and endpoints, get their own series; the rest are aggregated',
    '1000',
  ),
  int(
    'service-frontends-max',
    'maximum frontends (ports × addresses) of one Service per IP family; the rest are left out and reported',
    String(DEFAULT_SERVICE_LIMITS.frontends),
  ),
  int(
    'service-entries-max',
    'maximum endpoints and source ranges of one Service per IP family, summed over its frontends; session affinity counts as 100; frontends beyond are left out and reported',
    String(DEFAULT_SERVICE_LIMITS.entries),
  ),
  text(
    'iptables-flavor',
    'auto|legacy|nft',
    'iptables programs of mode iptables; auto: those that this host uses; also with --config',
    'auto',
  ),
  text('master', 'URL', "API server, in place of the kubeconfig's; also with --config", '', { url: true }),
  text(
    'bootstrap-kubeconfig',
    'file',
    'kubeconfig to request a client certificate with, if --kubeconfig is missing or its certificate unusable; --kubeconfig is then written',
  ),
  bool('rotate-certificates', 'renew the client certificate in --cert-dir before it expires'),
  text('signer-name', 'domain/name', 'signer of client certificates', 'kubernetes.io/kube-apiserver-client'),
  bool('init-only', 'make the kernel settings that need full privileges, check kernel and Node, then exit'),
  bool('cleanup', 'remove everything this program owns in the kernel, then exit'),
  text(
    'version',
    'true|raw|vX.Y.Z',
    'print the version, all of it with raw, and exit; vX.Y.Z…: report that version instead and go on',
    'false',
  ),
  text('write-config-to', 'file', 'write the effective configuration to a file, then exit'),
  int('healthz-port', 'port of --healthz-bind-address when that has none; 0 disables health checks', '10256', {
    remark: 'is deprecated, use --healthz-bind-address',
  }),
  int('metrics-port', 'port of --metrics-bind-address when that has none', '10249', {
    remark: 'is deprecated, use --metrics-bind-address',
  }),
  row('boot-id-file', 'string', 'has no effect', '/proc/sys/kernel/random/boot_id'),
  row('machine-id-file', 'string', 'has no effect', '/etc/machine-id,/var/lib/dbus/machine-id'),
] as const satisfies readonly Flag[];

/** Flags that code reads by name. */
export type FlagName =
  | (typeof PROCESS_FLAGS)[number]['name']
  | (typeof SECURED_FLAGS)[number]['name']
  | 'hostname-override'
  | 'proxy-mode'
  | 'healthz-bind-address'
  | 'metrics-bind-address';

/** Flags that set fields of KubeProxyConfiguration, in the order in which they are laid over a document with its defaults. */
export const CONFIGURATION_FLAGS = flagsOf(KUBE_PROXY);

/** Every flag, in alphabetical order. */
export const FLAGS: readonly Flag[] = [...PROCESS_FLAGS, ...SECURED_FLAGS, ...CONFIGURATION_FLAGS].sort((a, b) =>
  a.name < b.name ? -1 : 1,
);
