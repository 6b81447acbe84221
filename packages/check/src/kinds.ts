import type { Mapping } from '../../../src/config/yaml.js';
import { AUTHENTICATION_KIND, AUTHORIZATION_KIND } from '../../../src/config/kinds/access.js';
import { ADMISSION_KINDS, IMAGE_POLICY_META } from './tables/admission.js';
import { AUDIT } from '../../../src/config/kinds/audit.js';
import { CONFIG_MAP } from './tables/config-map.js';
import { CONTROLLER_MANAGERS } from './tables/controller-manager.js';
import { CREDENTIALS } from './tables/credentials.js';
import { EGRESS_AND_TRACING } from '../../../src/config/kinds/egress.js';
import { ENCRYPTION } from './tables/encryption.js';
import { KUBEADM } from './tables/kubeadm.js';
import { KUBELET } from './tables/kubelet.js';
import { REVIEWS } from './tables/reviews.js';
import { SCHEDULERS } from './tables/scheduler.js';
import { splitApiVersion } from '../../../src/config/tables/api-version.js';
import type { KindTable, TypeMeta } from '../../../src/config/tables/types.js';

/** The kinds that are read by a table. */
export const KINDS: readonly KindTable[] = [
  ...KUBEADM,
  ...KUBELET,
  ...EGRESS_AND_TRACING,
  ...AUTHENTICATION_KIND,
  ...AUTHORIZATION_KIND,
  ...AUDIT,
  ...ENCRYPTION,
  ...ADMISSION_KINDS,
  ...CONTROLLER_MANAGERS,
  ...SCHEDULERS,
  ...CREDENTIALS,
  ...REVIEWS,
  CONFIG_MAP,
];

/** The kind of a document that does not name it: a client needs neither version nor kind of a kubeconfig, and one admission plugin's file has none. */
export function impliedMeta(mapping: Mapping): TypeMeta | null {
  if (mapping.has(['imagePolicy']) && !mapping.has(['kind'])) return IMAGE_POLICY_META;
  const isKubeconfig = mapping.has(['clusters']) && mapping.has(['contexts']) && mapping.has(['users']);
  return isKubeconfig ? { apiVersion: 'v1', kind: 'Config' } : null;
}

/** The tables of a kind, of whatever group; several groups have kinds of one name. */
export function tablesOf(kind: string): readonly KindTable[] {
  return KINDS.filter((table) => table.kind === kind);
}

/** The table for a kind in a version; null: there is none. */
export function tableFor({ apiVersion, kind }: TypeMeta): KindTable | null {
  const { group, version } = splitApiVersion(apiVersion);
  return tablesOf(kind).find((table) => table.group === group && version in table.versions) ?? null;
}
