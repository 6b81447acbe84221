import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  durationWithin,
  field,
  int,
  int32,
  int64,
  list,
  map,
  oneOf,
  path,
  text,
  type StructType,
  type Type,
} from '../../../../src/config/tables/types.js';
import { CIPHER_SUITE } from './kubelet.js';

/** Flags of the API server, the controller manager and the scheduler of Kubernetes 1.36, with the ranges that their settings have in documents. */

type Flags = StructType['fields'];

function flags(type: Type, ...names: readonly string[]): Flags {
  return Object.fromEntries(names.flatMap((each) => each.split(/\s+/)).map((name) => [name, type]));
}

const texts = list(text);
const number = scalar('number');
const period = scalar('duration, not negative');
const above0 = scalar('duration above 0');
const count = int(1);
const port = int(0, 65_535);

/** Flags of every component that serves and logs. */
const COMPONENT: Flags = {
  ...flags(bool, 'contention-profiling disable-http2-serving help log-text-split-stream permit-address-sharing'),
  ...flags(bool, 'permit-port-sharing profiling'),
  ...flags(
    path,
    'allow-metric-labels-manifest cert-dir client-ca-file requestheader-client-ca-file tls-cert-file tls-private-key-file',
  ),
  ...flags(
    texts,
    'disabled-metrics emulated-version min-compatibility-version requestheader-allowed-names',
    'requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers',
    'requestheader-username-headers',
  ),
  ...flags(text, 'allow-metric-labels show-hidden-metrics-for-version tls-sni-cert-key version'),
  'bind-address': scalar('ip'),
  'feature-gates': map(bool),
  'http2-max-streams-per-connection': int(0),
  'log-flush-frequency': scalar('duration'),
  'log-text-info-buffer-size': scalar('quantity text'),
  'logging-format': oneOf('text', 'json'),
  'secure-port': port,
  'tls-cipher-suites': list(CIPHER_SUITE),
  'tls-curve-preferences': list(int32),
  'tls-min-version': oneOf('VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'),
  v: int(0),
  vmodule: map(int(0)),
};

/** Flags of every component that asks the API server, also for the identity of its clients. */
const CLIENT: Flags = {
  ...flags(bool, 'authentication-skip-lookup authentication-tolerate-lookup-failure leader-elect'),
  ...flags(
    scalar('duration'),
    'authentication-token-webhook-cache-ttl authorization-webhook-cache-authorized-ttl',
    'authorization-webhook-cache-unauthorized-ttl',
  ),
  ...flags(above0, 'leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period'),
  ...flags(text, 'kube-api-content-type leader-elect-resource-name leader-elect-resource-namespace master'),
  ...flags(path, 'authentication-kubeconfig authorization-kubeconfig kubeconfig'),
  'authorization-always-allow-paths': texts,
  'kube-api-burst': int32,
  'kube-api-qps': number,
  'leader-elect-resource-lock': oneOf('leases'),
};

const AUDIT_MODE = oneOf('batch', 'blocking', 'blocking-strict');
const AUDIT_VERSION = oneOf('audit.k8s.io/v1');
const REVIEW_VERSION = oneOf('v1', 'v1beta1');
const AUTHORIZERS = oneOf('AlwaysAllow', 'AlwaysDeny', 'ABAC', 'Webhook', 'RBAC', 'Node');
const ADDRESSES = oneOf('Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP');

export const API_SERVER_FLAGS: Flags = {
  ...COMPONENT,
  ...flags(
    bool,
    'aggregator-reject-forwarding-redirect allow-privileged anonymous-auth audit-log-batch-throttle-enable',
    'audit-log-compress audit-log-truncate-enabled audit-webhook-batch-throttle-enable',
    'audit-webhook-truncate-enabled emulation-forward-compatible enable-aggregator-routing',
    'enable-bootstrap-token-auth enable-garbage-collector enable-priority-and-fairness',
    'encryption-provider-config-automatic-reload runtime-config-emulation-forward-compatible',
    'service-account-extend-token-expiration service-account-lookup shutdown-send-retry-after watch-cache',
  ),
  ...flags(
    scalar('duration'),
    'audit-log-batch-max-wait audit-webhook-batch-max-wait audit-webhook-initial-backoff',
    'authentication-token-webhook-cache-ttl authorization-webhook-cache-authorized-ttl',
    'authorization-webhook-cache-unauthorized-ttl coordinated-leadership-lease-duration',
    'coordinated-leadership-renew-deadline coordinated-leadership-retry-period etcd-compaction-interval',
    'etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout',
    'event-ttl kubelet-timeout livez-grace-period request-timeout service-account-max-token-expiration',
    'shutdown-delay-duration shutdown-watch-termination-grace-period storage-initialization-timeout',
  ),
  ...flags(
    scalar('int'),
    'audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-throttle-burst audit-log-maxage',
    'audit-log-maxbackup audit-log-maxsize audit-webhook-batch-buffer-size audit-webhook-batch-max-size',
    'audit-webhook-batch-throttle-burst delete-collection-workers kubernetes-service-node-port',
    'max-mutating-requests-inflight max-requests-inflight min-request-timeout',
  ),
  ...flags(
    int64,
    'audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-webhook-truncate-max-batch-size',
    'audit-webhook-truncate-max-event-size default-not-ready-toleration-seconds',
    'default-unreachable-toleration-seconds lease-reuse-duration-seconds max-connection-bytes-per-sec',
  ),
  ...flags(
    path,
    'admission-control-config-file audit-log-path audit-policy-file audit-webhook-config-file authentication-config',
    'authentication-token-webhook-config-file authorization-config authorization-policy-file',
    'authorization-webhook-config-file debug-socket-path egress-selector-config-file encryption-provider-config',
    'etcd-cafile etcd-certfile etcd-keyfile kubelet-certificate-authority kubelet-client-certificate',
    'kubelet-client-key oidc-ca-file peer-ca-file proxy-client-cert-file proxy-client-key-file',
    'service-account-key-file service-account-signing-endpoint service-account-signing-key-file token-auth-file',
    'tracing-config-file',
  ),
  ...flags(
    text,
    'etcd-prefix external-hostname oidc-client-id oidc-groups-claim oidc-groups-prefix',
    'oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port runtime-config',
    'service-account-issuer service-account-jwks-uri storage-media-type',
  ),
  ...flags(
    texts,
    'api-audiences cors-allowed-origins disable-admission-plugins enable-admission-plugins etcd-servers-overrides',
    'oidc-signing-algs strict-transport-security-directives watch-cache-sizes',
  ),
  ...flags(number, 'audit-log-batch-throttle-qps audit-webhook-batch-throttle-qps'),
  ...flags(AUDIT_MODE, 'audit-log-mode audit-webhook-mode'),
  ...flags(AUDIT_VERSION, 'audit-log-version audit-webhook-version'),
  ...flags(REVIEW_VERSION, 'authentication-token-webhook-version authorization-webhook-version'),
  'advertise-address': scalar('ip'),
  'audit-log-format': oneOf('legacy', 'json'),
  'authorization-mode': list(AUTHORIZERS, { unique: '' }),
  'endpoint-reconciler-type': oneOf('master-count', 'lease', 'none'),
  'etcd-servers': texts,
  'goaway-chance': scalar('number', 0, 0.02),
  'kubelet-preferred-address-types': list(ADDRESSES),
  'oidc-issuer-url': scalar('https url'),
  'oidc-required-claim': map(text),
  'secure-port': int(1, 65_535),
  'service-cluster-ip-range': scalar('cidrs'),
  'service-node-port-range': scalar('port range'),
  'storage-backend': oneOf('etcd3'),
  'admission-control': field(texts, { deprecated: '--enable-admission-plugins' }),
  'apiserver-count': field(scalar('int'), { deprecated: '' }),
  'audit-webhook-batch-initial-backoff': field(scalar('duration'), { deprecated: '--audit-webhook-initial-backoff' }),
  'default-watch-cache-size': field(scalar('int'), { deprecated: 'nothing: sizes follow from use' }),
  'enable-logs-handler': field(bool, { deprecated: '' }),
  'kubelet-port': field(int(0), { deprecated: '' }),
  'kubelet-read-only-port': field(int(0), { deprecated: '' }),
};

export const CONTROLLER_MANAGER_FLAGS: Flags = {
  ...COMPONENT,
  ...CLIENT,
  ...flags(
    bool,
    'allocate-node-cidrs configure-cloud-routes disable-attach-detach-reconcile-sync disable-force-detach-on-timeout',
    'enable-dynamic-provisioning enable-garbage-collector enable-hostpath-provisioner enable-leader-migration',
    'use-service-account-credentials',
  ),
  ...flags(
    count,
    'concurrent-cron-job-syncs concurrent-daemonset-syncs concurrent-deployment-syncs',
    'concurrent-device-taint-eviction-syncs concurrent-endpoint-syncs concurrent-ephemeralvolume-syncs',
    'concurrent-gc-syncs concurrent-horizontal-pod-autoscaler-syncs concurrent-job-syncs concurrent-namespace-syncs',
    'concurrent-rc-syncs concurrent-replicaset-syncs concurrent-resource-quota-syncs concurrent-resourceclaim-syncs',
    'concurrent-serviceaccount-token-syncs concurrent-statefulset-syncs',
    'concurrent-ttl-after-finished-syncs concurrent-validating-admission-policy-status-syncs',
  ),
  ...flags(int(1, 50), 'concurrent-service-endpoint-syncs mirroring-concurrent-service-endpoint-syncs'),
  ...flags(int(1, 1000), 'max-endpoints-per-slice mirroring-max-endpoints-per-subset'),
  ...flags(int(0, 128), 'node-cidr-mask-size node-cidr-mask-size-ipv6'),
  ...flags(
    int(0),
    'large-cluster-size-threshold pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath',
    'pv-recycler-minimum-timeout-nfs pv-recycler-timeout-increment-hostpath',
  ),
  ...flags(
    period,
    'controller-shutdown-timeout controller-start-interval endpoint-updates-batch-period',
    'endpointslice-updates-batch-period horizontal-pod-autoscaler-cpu-initialization-period',
    'horizontal-pod-autoscaler-downscale-stabilization horizontal-pod-autoscaler-initial-readiness-delay',
    'horizontal-pod-autoscaler-sync-period legacy-service-account-token-clean-up-period min-resync-period',
    'mirroring-endpointslice-updates-batch-period namespace-sync-period node-monitor-grace-period node-monitor-period',
    'node-startup-grace-period pvclaimbinder-sync-period resource-quota-sync-period route-reconciliation-period',
  ),
  ...flags(
    path,
    'cloud-config cluster-signing-cert-file cluster-signing-key-file cluster-signing-kube-apiserver-client-cert-file',
    'cluster-signing-kube-apiserver-client-key-file cluster-signing-kubelet-client-cert-file',
    'cluster-signing-kubelet-client-key-file cluster-signing-kubelet-serving-cert-file',
    'cluster-signing-kubelet-serving-key-file cluster-signing-legacy-unknown-cert-file',
    'cluster-signing-legacy-unknown-key-file flex-volume-plugin-dir leader-migration-config',
    'pv-recycler-pod-template-filepath-hostpath pv-recycler-pod-template-filepath-nfs root-ca-file',
    'service-account-private-key-file',
  ),
  ...flags(scalar('number', 0, 1_000_000), 'node-eviction-rate secondary-node-eviction-rate'),
  ...flags(text, 'cloud-provider cluster-name external-cloud-volume-plugin'),
  'attach-detach-reconcile-sync-period': durationWithin('1s'),
  'cidr-allocator-type': oneOf('RangeAllocator'),
  'cluster-cidr': scalar('cidrs'),
  'cluster-signing-duration': above0,
  'concurrent-service-syncs': field(count, { removed: 37 }),
  controllers: texts,
  'horizontal-pod-autoscaler-tolerance': scalar('number', 0, 1_000_000),
  'node-cidr-mask-size-ipv4': int(0, 32),
  'service-cluster-ip-range': scalar('cidrs'),
  'terminated-pod-gc-threshold': int32,
  'unhealthy-zone-threshold': scalar('number', 0, 1),
  'allow-untagged-cloud': field(bool, { deprecated: '' }),
  'node-sync-period': field(scalar('duration'), { deprecated: 'nothing: it has no effect' }),
};

export const SCHEDULER_FLAGS: Flags = {
  ...COMPONENT,
  ...CLIENT,
  ...flags(path, 'config write-config-to'),
  'pod-max-in-unschedulable-pods-duration': period,
};
