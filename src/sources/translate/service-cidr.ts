import { parsePrefix, prefixesOverlap, type IPPrefix } from '../../base/ip.js';
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
    cidrs: readCIDRs(spec),
  };
  fields.check();
  return { ref, row, warnings: fields.findings.warnings.all() };
}

/** The unspecified address, loopback and multicast: no Service can have them (RFC 6890, RFC 4291). */
const SPECIAL = ['0.0.0.0/32', '127.0.0.0/8', '224.0.0.0/4', '::/127', 'ff00::/8'].flatMap(
  (text) => parsePrefix(text) ?? [],
);

/** What goes to an address of these that no Service has is refused, so they must not take in what the node needs for itself. */
function readCIDRs(spec: Fields): readonly IPPrefix[] {
  const texts = spec.strings('cidrs').filter(({ text, at }) => {
    const cidr = parsePrefix(text);
    const special = SPECIAL.find((range) => cidr !== null && prefixesOverlap(cidr, range));
    if (special !== undefined) spec.warn(at, text, `takes in addresses of ${special}, and is left out`);
    return special === undefined;
  });
  return readPrefixes(spec, texts);
}
