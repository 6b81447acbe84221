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
    help: 'KubeProxyConfiguration file, YAML or JSON, followed while running; it replaces every flag but those that say otherwise',
    initial: '',
  },
  {
    name: 'config-dir',
    type: 'string',
    value: 'directory',
    help: 'files (*.conf, *.yaml, *.yml, *.json) to lay over --config, in the order of their names; maps merge, lists and single values replace',
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
    help: "header for requests to the manifest URLs of an origin, 'https://host:port', which may be left out where there is only one; several are separated by commas, and it may be repeated",
    initial: '[]',
    secret: true,
  },
  {
    name: 'manifests-header-file',
    type: 'list',
    value: 'file',
    help: 'such headers, one a line, read again for each request; empty lines and those that begin with # do not count; may be repeated',
    initial: '[]',
  },
  {
    name: 'manifests-ca-file',
    type: 'list',
    value: "'[origin ]file'",
    help: "certificates that vouch for an origin's server in place of those that the system trusts; may be repeated",
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
    help: 'period between looks at manifest files for changes that the system did not tell of',
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
    help: 'TracingConfiguration, read at the start: where traces are sent by OTLP over gRPC, and of how many changes; empty: nowhere',
    initial: '',
  },
  {
    name: 'egress-selector-config-file',
    type: 'string',
    value: 'file',
    help: 'EgressSelectorConfiguration, read at the start: how its controlplane reaches the API server, in place of every proxy; empty: as the kubeconfig and the environment say',
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
    help: 'EventRateLimit Configuration, read at the start: limits that count beside these; empty: none',
    initial: '',
  },
  {
    name: 'change-log-path',
    type: 'string',
    value: 'file',
    help: 'file for what is changed in the kernel, and for which versions of which objects, as lines of JSON; -: the standard output',
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
    help: 'in modes nftables and ipvs: what picks the endpoint of a connection to a Service without the annotation pointsman.dev/balance: random, hash=address or hash=address,port',
    initial: 'random',
  },
  {
    name: 'balance-slots-max',
    type: 'int32',
    value: 'slots',
    help: 'in mode nftables: how many slots the tables of all Services with weights or hashing have in each IP family; the oldest Services get them',
    initial: '262144',
  },
  {
    name: 'reset-removed-endpoints',
    type: 'bool',
    help: 'in mode nftables: reset TCP connections through Services to pods whose address is in no EndpointSlice any more, so that clients learn of it',
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
    help: 'in modes nftables and iptables: the same of datagrams to UDP port 53 of a Service, when the client asks again; whole seconds; 0: they stay',
    initial: '2s',
  },
  {
    name: 'service-telemetry',
    type: 'bool',
    help: 'count connections, packets and bytes of each Service port, and measure how long its changes take to the kernel; switches net.netfilter.nf_conntrack_acct on',
    initial: 'false',
  },
  {
    name: 'service-telemetry-endpoints',
    type: 'bool',
    help: 'with --service-telemetry: of each endpoint, too',
    initial: 'false',
  },
  {
    name: 'service-telemetry-max',
    type: 'int32',
    help: 'with --service-telemetry: how many Service ports, and how many endpoints, have metrics of their own; the rest are counted together',
    initial: '1000',
  },
  {
    name: 'service-frontends-max',
    type: 'int32',
    help: 'how many frontends (ports × addresses) of one Service are programmed in each IP family; what is beyond stays out and is reported',
    initial: String(DEFAULT_SERVICE_LIMITS.frontends),
  },
  {
    name: 'service-entries-max',
    type: 'int32',
    help: 'how many endpoints and source ranges, summed over its frontends, one Service has in each IP family; frontends beyond stay out and are reported',
    initial: String(DEFAULT_SERVICE_LIMITS.entries),
  },
  {
    name: 'iptables-flavor',
    type: 'string',
    value: 'auto|legacy|nft',
    help: 'which iptables programs mode iptables uses: auto finds out which this host uses; counts beside --config',
    initial: 'auto',
  },
  {
    name: 'master',
    type: 'string',
    value: 'URL',
    help: "the API server, in place of the kubeconfig's; counts beside --config",
    initial: '',
    url: true,
  },
  {
    name: 'bootstrap-kubeconfig',
    type: 'string',
    value: 'file',
    help: 'by which a client certificate is asked for when the kubeconfig is missing or its certificate is of no use; the kubeconfig is written with what is issued',
    initial: '',
  },
  {
    name: 'rotate-certificates',
    type: 'bool',
    help: 'ask for another client certificate before the one in --cert-dir ends',
    initial: 'false',
  },
  {
    name: 'signer-name',
    type: 'string',
    value: 'domain/name',
    help: 'who is to sign client certificates',
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
    help: 'port of --healthz-bind-address when that has none; 0 switches health checks off',
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
