import type { Row, RowKind } from '../../state/rows.js';
import { translateEndpointSlice } from './endpoint-slice.js';
import type { Interner } from './intern.js';
import type { Translation } from './metadata.js';
import { translateNode } from './node.js';
import { translateServiceCIDR } from './service-cidr.js';
import { translateService } from './service.js';

/** The API group of each kind we read, and the versions of it whose fields are the same. */
const KINDS: Readonly<Record<RowKind, { readonly group: string; readonly versions: readonly string[] }>> = {
  Service: { group: '', versions: ['v1'] },
  EndpointSlice: { group: 'discovery.k8s.io', versions: ['v1'] },
  Node: { group: '', versions: ['v1'] },
  ServiceCIDR: { group: 'networking.k8s.io', versions: ['v1', 'v1beta1'] },
};

const ROW_KINDS: readonly RowKind[] = ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'];

/** `other`: a kind we do not read. `version`: a kind we do, in a version we do not. */
type Recognition =
  | { readonly type: 'ours'; readonly kind: RowKind }
  | { readonly type: 'version'; readonly kind: RowKind; readonly versions: readonly string[] }
  | { readonly type: 'other' };

export function recognise(apiVersion: string, kind: string): Recognition {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const ours = ROW_KINDS.find((candidate) => candidate === kind && KINDS[candidate].group === group);
  if (ours === undefined) return { type: 'other' };
  const { versions } = KINDS[ours];
  if (versions.includes(apiVersion.slice(slash + 1))) return { type: 'ours', kind: ours };
  return {
    type: 'version',
    kind: ours,
    versions: versions.map((version) => (group === '' ? version : `${group}/${version}`)),
  };
}

/**
 * Translates an object of a known kind.
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translate(kind: RowKind, object: unknown, names: Interner): Translation<Row> {
  switch (kind) {
    case 'Service':
      return translateService(object, names);
    case 'EndpointSlice':
      return translateEndpointSlice(object, names);
    case 'Node':
      return translateNode(object, names);
    case 'ServiceCIDR':
      return translateServiceCIDR(object, names);
  }
}
