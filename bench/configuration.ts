import { writeFileSync } from 'node:fs';
import { POD_RANGE } from './cluster.js';

export interface BenchConfiguration {
  /** Path of the file. */
  readonly file: string;
  readonly kubeconfig: string;
  /** A mode, perhaps with the flavour of its programs behind a dash. */
  readonly mode: string;
  readonly syncPeriod: string;
  readonly verbosity: number;
}

/** Writes the KubeProxyConfiguration that a proxy is measured with. */
export function writeConfiguration({ file, kubeconfig, mode: named, syncPeriod, verbosity }: BenchConfiguration): void {
  const [mode = ''] = named.split('-');
  const text = JSON.stringify({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig, contentType: 'application/vnd.kubernetes.protobuf' },
    mode,
    logging: { verbosity },
    clusterCIDR: POD_RANGE,
    detectLocalMode: 'ClusterCIDR',
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    // kube-proxy takes 0 for its default of 1 s.
    [mode]: { minSyncPeriod: mode === 'nftables' ? '0s' : '1ms', syncPeriod },
  });
  writeFileSync(file, text);
}
