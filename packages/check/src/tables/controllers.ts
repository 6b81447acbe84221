import { printValue } from '../../../../src/config/errors.js';
import { rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import type { Rule } from '../../../../src/config/tables/types.js';

/** Releases whose controllers are known, and whether those below are all that they have. */
const RELEASES: readonly { readonly release: number; readonly isComplete: boolean }[] = [
  { release: 36, isComplete: true },
  { release: 37, isComplete: false },
];

/** Names of the controllers of the controller manager. */
const NAMES = `
  bootstrap-signer-controller certificatesigningrequest-approving-controller
  certificatesigningrequest-cleaner-controller certificatesigningrequest-signing-controller
  cloud-node-lifecycle-controller clusterrole-aggregation-controller cronjob-controller daemonset-controller
  deployment-controller device-taint-eviction-controller disruption-controller endpoints-controller
  endpointslice-controller endpointslice-mirroring-controller ephemeral-volume-controller
  garbage-collector-controller horizontal-pod-autoscaler-controller job-controller
  kube-apiserver-serving-clustertrustbundle-publisher-controller legacy-serviceaccount-token-cleaner-controller
  namespace-controller node-ipam-controller node-lifecycle-controller node-route-controller
  persistentvolume-attach-detach-controller persistentvolume-binder-controller
  persistentvolume-expander-controller persistentvolume-protection-controller
  persistentvolumeclaim-protection-controller pod-garbage-collector-controller
  podcertificaterequest-cleaner-controller podgroup-protection-controller replicaset-controller
  replicationcontroller-controller resourceclaim-controller resourcepoolstatusrequest-controller
  resourcequota-controller root-ca-certificate-publisher-controller selinux-warning-controller
  service-ca-certificate-publisher-controller service-cidr-controller service-lb-controller
  serviceaccount-controller serviceaccount-token-controller statefulset-controller
  storage-version-migrator-controller storageversion-garbage-collector-controller taint-eviction-controller
  token-cleaner-controller ttl-after-finished-controller ttl-controller
  validatingadmissionpolicy-status-controller volumeattributesclass-protection-controller
`;

/** What they were called before, which still counts. */
const OLD_NAMES = `
  attachdetach bootstrapsigner cloud-node-lifecycle clusterrole-aggregation cronjob csrapproving csrcleaner
  csrsigning daemonset deployment disruption endpoint endpointslice endpointslicemirroring ephemeral-volume
  garbagecollector horizontalpodautoscaling job legacy-service-account-token-cleaner namespace nodeipam
  nodelifecycle persistentvolume-binder persistentvolume-expander podgc pv-protection pvc-protection replicaset
  replicationcontroller resource-claim-controller resourcequota root-ca-cert-publisher route service
  service-ca-cert-publisher serviceaccount serviceaccount-token statefulset storage-version-gc svm tokencleaner
  ttl ttl-after-finished
`;

const KNOWN: ReadonlySet<string> = new Set(`${NAMES} ${OLD_NAMES}`.trim().split(/\s+/));

/** The first of some entries, `*`, `name` or `-name`, that names no controller; null: none. */
function unknownController(entries: readonly string[]): string | null {
  return entries.find((entry) => !['*', '', '-'].includes(entry) && !KNOWN.has(entry.replace(/^-/, ''))) ?? null;
}

export const KNOWN_CONTROLLERS: Rule = rule('value', (section) => {
  const generic: Section | null = section.section('Generic');
  const known = RELEASES.find(({ release }) => release === section.release);
  const unknown = known === undefined ? null : unknownController(generic?.texts('Controllers') ?? []);
  if (unknown === null) return;
  if (known?.isComplete === true)
    generic?.refuse('value', 'Controllers', `has ${printValue(unknown)}, which is no controller`);
  else generic?.warn('value', 'Controllers', `has ${printValue(unknown)}, a controller that is not known here`);
});
