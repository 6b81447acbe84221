import type { ApiObject } from '../api-objects.js';

/** The DaemonSet that kubeadm makes (CF-53). */
export const KUBEADM_DAEMON_SET: ApiObject = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { labels: { 'k8s-app': 'kube-proxy' }, name: 'kube-proxy', namespace: 'kube-system' },
  spec: {
    selector: { matchLabels: { 'k8s-app': 'kube-proxy' } },
    template: {
      metadata: { labels: { 'k8s-app': 'kube-proxy' } },
      spec: {
        containers: [
          {
            command: [
              '/usr/local/bin/kube-proxy',
              '--config=/var/lib/kube-proxy/config.conf',
              '--hostname-override=$(NODE_NAME)',
            ],
            env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
            image: 'kube-proxy:v1.36.2',
            imagePullPolicy: 'IfNotPresent',
            name: 'kube-proxy',
            resources: {},
            securityContext: { privileged: true },
            volumeMounts: [
              { mountPath: '/var/lib/kube-proxy', name: 'kube-proxy' },
              { mountPath: '/run/xtables.lock', name: 'xtables-lock' },
              { mountPath: '/lib/modules', name: 'lib-modules', readOnly: true },
            ],
          },
        ],
        hostNetwork: true,
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        priorityClassName: 'system-node-critical',
        serviceAccountName: 'kube-proxy',
        tolerations: [{ operator: 'Exists' }],
        volumes: [
          { configMap: { name: 'kube-proxy' }, name: 'kube-proxy' },
          { hostPath: { path: '/run/xtables.lock', type: 'FileOrCreate' }, name: 'xtables-lock' },
          { hostPath: { path: '/lib/modules' }, name: 'lib-modules' },
        ],
      },
    },
    updateStrategy: { rollingUpdate: { maxUnavailable: 1 }, type: 'RollingUpdate' },
  },
};
