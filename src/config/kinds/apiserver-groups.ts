import type { KindTable, Served, StructType } from '../tables/types.js';

/** A kind of the API server's configuration. Its early versions are known under both names of the group. */
export function apiServerKind(
  kind: string,
  table: StructType,
  stable: Readonly<Record<string, Served>>,
  early: Readonly<Record<string, Served>> = { v1alpha1: {}, v1beta1: {} },
): readonly [KindTable, KindTable] {
  return [
    { kind, group: 'apiserver.config.k8s.io', versions: { ...early, ...stable }, table },
    { kind, group: 'apiserver.k8s.io', versions: early, table },
  ];
}
