import type { Mapping } from '../config/yaml.js';
import { ACCESS } from './tables/access.js';
import { ADMISSION_KINDS } from './tables/admission.js';
import { AUDIT } from './tables/audit.js';
import { CONTROLLER_MANAGERS } from './tables/controller-manager.js';
import { CREDENTIALS } from './tables/credentials.js';
import { EGRESS_AND_TRACING } from './tables/egress.js';
import { ENCRYPTION } from './tables/encryption.js';
import { KUBEADM } from './tables/kubeadm.js';
import { KUBELET } from './tables/kubelet.js';
import { SCHEDULERS } from './tables/scheduler.js';
import type { KindTable, TypeMeta } from './types.js';

/** The kinds that are read by a table. */
export const KINDS: readonly KindTable[] = [
  ...KUBEADM,
  ...KUBELET,
  ...EGRESS_AND_TRACING,
  ...ACCESS,
  ...AUDIT,
  ...ENCRYPTION,
  ...ADMISSION_KINDS,
  ...CONTROLLER_MANAGERS,
  ...SCHEDULERS,
  ...CREDENTIALS,
];

/** What a document says it is, split. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

export function splitApiVersion(apiVersion: string): GroupVersion {
  const slash = apiVersion.indexOf('/');
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

export function joinApiVersion({ group, version }: GroupVersion): string {
  return group === '' ? version : `${group}/${version}`;
}

/** What a document is that does not say so: of a kubeconfig's two fields that would, a client needs neither. */
export function impliedMeta(mapping: Mapping): TypeMeta | null {
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
