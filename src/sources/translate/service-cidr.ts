import type { ServiceCIDRRow } from '../../state/rows.js';
import { Fields } from './fields.js';
import type { Interner } from './intern.js';
import { readRef, type Translation } from './metadata.js';
import { readPrefixes } from './node.js';

/**
 * Translates a networking.k8s.io/v1 ServiceCIDR.
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translateServiceCIDR(object: unknown, names: Interner): Translation<ServiceCIDRRow> {
  const fields = Fields.of(object);
  const ref = readRef(fields, 'ServiceCIDR');
  const spec = fields.section('spec');
  const row: ServiceCIDRRow = {
    kind: 'ServiceCIDR',
    name: names.own(ref.name),
    cidrs: readPrefixes(spec, spec.strings('cidrs')),
  };
  fields.check();
  return { ref, row, warnings: fields.findings.warnings.texts };
}
