import { filledFields, type Cluster } from '../auth/kubeconfig.js';

/** A kubeconfig that identifies us by a file with certificate and key. */
export function kubeconfigText(cluster: Cluster | null, pair: string): string {
  return textFor(cluster, { 'client-certificate': pair, 'client-key': pair });
}

/** The same that holds them itself. */
export function kubeconfigWith(cluster: Cluster | null, certificate: string, key: string): string {
  const [first, second] = [certificate, key].map((pem) => Buffer.from(pem, 'latin1').toString('base64'));
  return textFor(cluster, { 'client-certificate-data': first, 'client-key-data': second });
}

/** It is JSON, which is YAML too. */
function textFor(cluster: Cluster | null, identity: object): string {
  const [name, user] = ['default-cluster', 'default-auth'];
  const context = { user, namespace: 'default', ...(cluster === null ? {} : { cluster: name }) };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: cluster === null ? [] : [{ name, cluster: clusterFields(cluster) }],
    contexts: [{ name: 'default-context', context }],
    'current-context': 'default-context',
    users: [{ name: user, user: identity }],
  };
  return `${JSON.stringify(kubeconfig, null, 2)}\n`;
}

function clusterFields(cluster: Cluster): Readonly<Record<string, unknown>> {
  const { authority } = cluster;
  return {
    ...filledFields(cluster),
    ...(authority?.type === 'file' ? { 'certificate-authority': authority.path } : {}),
  };
}
