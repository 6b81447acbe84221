import { isUnspecified, parseAddress, parsePrefix, type IPAddress, type IPPrefix } from '../../base/ip.js';
import type { NodeRow } from '../../state/rows.js';
import { Fields } from './fields.js';
import type { Interner } from './intern.js';
import { LONGEST_LABEL, readRef, readTime, type Translation } from './metadata.js';

const ZONE_LABEL = 'topology.kubernetes.io/zone';
const AUTOSCALER_TAINT = 'ToBeDeletedByClusterAutoscaler';

/**
 * Translates a core/v1 Node.
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translateNode(object: unknown, names: Interner): Translation<NodeRow> {
  const fields = Fields.of(object);
  const ref = readRef(fields, 'Node');
  const metadata = fields.section('metadata');
  const zone = metadata.section('labels').string(ZONE_LABEL) ?? '';
  const isZone = zone !== '' && zone.length <= LONGEST_LABEL;
  const spec = fields.section('spec');
  const deleting = readTime(metadata, 'deletionTimestamp') !== null;
  const tainted = spec
    .sections('taints')
    .map((taint) => taint.string('key'))
    .includes(AUTOSCALER_TAINT);
  const row: NodeRow = {
    kind: 'Node',
    name: names.own(ref.name),
    addresses: readAddresses(fields.section('status')),
    podCIDRs: readPodCIDRs(spec),
    zone: isZone ? names.text(zone) : null,
    eligible: !deleting && !tainted,
  };
  fields.check();
  return { ref, row, warnings: fields.findings.warnings.all() };
}

/** Behaviour ST-14: InternalIPs before ExternalIPs, each in status order. */
function readAddresses(status: Fields): readonly IPAddress[] {
  const internal: IPAddress[] = [];
  const external: IPAddress[] = [];
  for (const entry of status.sections('addresses')) {
    const type = entry.string('type');
    if (type !== 'InternalIP' && type !== 'ExternalIP') continue;
    const text = entry.string('address') ?? '';
    const address = parseAddress(text);
    if (address !== null && !isUnspecified(address)) (type === 'InternalIP' ? internal : external).push(address);
    else entry.warn('address', text, 'is not the IP address of a node and left out');
  }
  return [...new Set([...internal, ...external])];
}

function readPodCIDRs(spec: Fields): readonly IPPrefix[] {
  const single = spec.string('podCIDR') ?? '';
  const listed = spec.strings('podCIDRs');
  const texts = listed.length === 0 && single !== '' ? [{ text: single, at: 'podCIDR' }] : listed;
  return readPrefixes(spec, texts);
}

/** Prefixes that must all be well-formed. */
export function readPrefixes(
  fields: Fields,
  texts: readonly { readonly text: string; readonly at: string }[],
): readonly IPPrefix[] {
  const prefixes = new Set<IPPrefix>();
  for (const { text, at } of texts) {
    const prefix = parsePrefix(text);
    if (prefix === null) fields.refuse(at, text, 'must be a prefix such as "192.0.2.0/24"');
    else prefixes.add(prefix);
  }
  return [...prefixes];
}
