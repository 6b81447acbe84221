import { bool, field, map, partial, required, text, type KindTable } from '../../../../src/config/tables/types.js';
import { scalar } from '../../../../src/config/tables/formats.js';

/** Objects that hold configuration files as text. */
export const CONFIG_MAP: KindTable = {
  kind: 'ConfigMap',
  group: '',
  versions: { v1: {} },
  table: partial({
    metadata: required(partial({ name: text, namespace: text })),
    // A kubeconfig may be among them.
    data: field(map(text), { secret: true }),
    binaryData: field(map(scalar('base64')), { secret: true }),
    immutable: bool,
  }),
};
