import type { KindTable, Served, StructType } from '../tables/types.js';

type Versions = Readonly<Record<string, Served>>;

/** A kind of the API server's configuration, whose group has two names with versions of their own. */
export function apiServerKind(
  kind: string,
  table: StructType,
  versions: Versions,
  early: Versions,
): readonly [KindTable, KindTable] {
  return [
    { kind, group: 'apiserver.config.k8s.io', versions, table },
    { kind, group: 'apiserver.k8s.io', versions: early, table },
  ];
}

/** A kind whose early versions are served under the later name of the group only, though reference documents have them under both. */
export function renamedKind(kind: string, table: StructType, stable: Versions): readonly [KindTable, KindTable] {
  const early = { v1alpha1: {}, v1beta1: {} };
  return apiServerKind(
    kind,
    table,
    { ...early, ...stable },
    { v1alpha1: { isServed: false }, v1beta1: { isServed: false } },
  );
}
