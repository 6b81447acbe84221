import { ACCESS } from './access.js';
import { ADMISSION } from './admission.js';
import { AUDIT } from './audit.js';
import { CONTROLLER_MANAGER } from './controller-manager.js';
import { CREDENTIALS } from './credentials.js';
import { ECOSYSTEM } from './ecosystem.js';
import { EGRESS } from './egress.js';
import { ENCRYPTION, OLD_ENCRYPTION } from './encryption.js';
import { KUBEADM } from './kubeadm.js';
import { KUBELET } from './kubelet.js';
import { OBJECTS } from './objects.js';
import { PROXY } from './proxy.js';
import { RELEASES } from './releases.js';
import { REVIEWS } from './reviews.js';
import { SCHEDULER } from './scheduler.js';
import type { Golden } from './golden.js';

/** Documents of every kind, right and wrong. */
export const KINDS: readonly Golden[] = [
  PROXY,
  ...KUBEADM,
  ...KUBELET,
  ...EGRESS,
  ...ACCESS,
  ...AUDIT,
  ...ENCRYPTION,
  ...OLD_ENCRYPTION,
  ...ADMISSION,
  ...CONTROLLER_MANAGER,
  ...SCHEDULER,
  ...CREDENTIALS,
  ...REVIEWS,
  ...ECOSYSTEM,
  ...OBJECTS,
  ...RELEASES,
];
