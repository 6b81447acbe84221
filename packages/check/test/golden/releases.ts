import type { Golden } from './golden.js';

const JWT =
  'jwt: [{issuer: {url: "https://i", audiences: [a], egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ""}}}]';
const WEBHOOK =
  'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, cacheAuthorizedRequests: true, cacheUnauthorizedRequests: true, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}}]';

function tooNew(apiVersion: string, kind: string, since: number, body = ''): Golden {
  const reported = `error: ${kind}.apiVersion: "${apiVersion}": exists since Kubernetes 1.${since} only`;
  return { apiVersion, kind, release: since - 1, right: [], wrong: [[body, reported]] };
}

/** What releases before have not yet, or have no more of. */
export const RELEASES: readonly Golden[] = [
  tooNew('kubeadm.k8s.io/v1beta4', 'InitConfiguration', 31),
  tooNew('kubeadm.k8s.io/v1beta4', 'ResetConfiguration', 31),
  tooNew('kubeadm.k8s.io/v1beta3', 'ClusterConfiguration', 22),
  tooNew('apiserver.config.k8s.io/v1', 'TracingConfiguration', 34),
  tooNew('kubescheduler.config.k8s.io/v1', 'KubeSchedulerConfiguration', 25),
  tooNew('client.authentication.k8s.io/v1', 'ExecCredential', 22, 'spec: {interactive: true}\nstatus: {token: S3cr3t}'),
  {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'UpgradeConfiguration',
    release: 32,
    right: ['plan: {dryRun: true}'],
    wrong: [
      ['plan: {etcdUpgrade: true}', 'error: UpgradeConfiguration.plan.etcdUpgrade: exists since Kubernetes 1.33 only'],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1beta1',
    kind: 'AuthenticationConfiguration',
    release: 33,
    right: [JWT.replace(', egressSelectorType: cluster', '')],
    wrong: [
      [JWT, 'error: AuthenticationConfiguration.jwt[0].issuer.egressSelectorType: exists since Kubernetes 1.34 only'],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    release: 33,
    right: [],
    wrong: [
      [
        WEBHOOK,
        'error: AuthorizationConfiguration.authorizers[0].webhook.cacheAuthorizedRequests: exists since Kubernetes 1.34 only',
        'error: AuthorizationConfiguration.authorizers[0].webhook.cacheUnauthorizedRequests: exists since Kubernetes 1.34 only',
      ],
    ],
  },
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    release: 22,
    right: ['rules: [{level: None}]'],
    wrong: [
      [
        'omitManagedFields: true\nrules: [{level: None}]',
        'error: Policy.omitManagedFields: exists since Kubernetes 1.23 only',
      ],
    ],
  },
];
