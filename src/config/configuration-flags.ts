import { KUBE_PROXY } from './document.js';
import { flagsOf } from './tables/settings.js';

/** Flags that set fields of KubeProxyConfiguration, in the order in which they are laid over a document with its defaults. */
export const CONFIGURATION_FLAGS = flagsOf(KUBE_PROXY);
