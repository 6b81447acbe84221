/** What the configuration file says it is. */
export const API_GROUP = 'kubeproxy.config.k8s.io';
export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';
