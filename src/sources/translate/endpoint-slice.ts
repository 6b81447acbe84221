import type { Family } from '../../base/ip.js';
import { PROTOCOLS } from '../../base/protocol.js';
import type { EndpointPortRow, EndpointSliceRow } from '../../state/rows.js';
import { conditionFlags, EndpointColumns } from './endpoint-columns.js';
import { Fields, isMapping } from './fields.js';
import type { Interner } from './intern.js';
import { checkName, parseTime, readRef, type Translation } from './metadata.js';

const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
const HEADLESS_LABEL = 'service.kubernetes.io/headless';
const TRIGGER_TIME_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';
const ADDRESS_TYPES = ['IPv4', 'IPv6', 'FQDN'] as const;

/**
 * Translates a discovery.k8s.io/v1 EndpointSlice and applies the API's defaults. Row null for slices of headless Services (behaviour
 * WA-03), slices that name no Service (EP-01), and slices of host names (EP-02).
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translateEndpointSlice(object: unknown, names: Interner): Translation<EndpointSliceRow> {
  const fields = Fields.of(object);
  const ref = readRef(fields, 'EndpointSlice');
  const labels = fields.section('metadata').section('labels');
  const absent = (): Translation<EndpointSliceRow> => {
    fields.check();
    return { ref, row: null, warnings: fields.findings.warnings.texts };
  };
  if (labels.has(HEADLESS_LABEL)) return absent();
  const serviceName = labels.string(SERVICE_NAME_LABEL) ?? '';
  const addressType = readAddressType(fields);
  if (serviceName === '') {
    labels.warn(SERVICE_NAME_LABEL, null, 'names no Service: the slice is not used');
    return absent();
  }
  checkName(labels, SERVICE_NAME_LABEL, serviceName, 'label');
  if (addressType === 'FQDN') {
    fields.warn('addressType', addressType, 'host names are not supported: the slice is not used');
    return absent();
  }
  const ports = readPorts(fields);
  const columns = readEndpoints(fields, addressType, names);
  fields.check();
  const row: EndpointSliceRow = {
    kind: 'EndpointSlice',
    namespace: names.text(ref.namespace),
    name: names.own(ref.name),
    serviceName: names.text(serviceName),
    family: addressType,
    lastChangeTriggerTime: readTriggerTime(fields),
    ports: names.ports(ports),
    ...columns,
  };
  return { ref, row, warnings: fields.findings.warnings.texts };
}

/** Metrics are not worth refusing a slice for: a time that cannot be read counts as none. */
function readTriggerTime(fields: Fields): number | null {
  const metadata = fields.raw('metadata');
  const annotations = isMapping(metadata) ? metadata['annotations'] : null;
  const text = isMapping(annotations) ? annotations[TRIGGER_TIME_ANNOTATION] : null;
  return typeof text === 'string' ? parseTime(text) : null;
}

function readAddressType(fields: Fields): (typeof ADDRESS_TYPES)[number] {
  const text = fields.requiredString('addressType');
  return text === '' ? 'IPv4' : fields.choice('addressType', ADDRESS_TYPES, 'IPv4');
}

/** Behaviour EP-03. A port without a number means all ports, which no Service port can be joined with: left out. */
function readPorts(fields: Fields): readonly EndpointPortRow[] {
  const sections = fields.sections('ports');
  const seen = sections.length > 1 ? new Set<string>() : null;
  const ports: EndpointPortRow[] = [];
  for (const section of sections) {
    const name = section.string('name') ?? '';
    if (name !== '') checkName(section, 'name', name, 'label');
    if (seen?.has(name) === true) section.refuse('name', name, 'must not be used by two ports of one slice');
    seen?.add(name);
    const protocol = section.choice('protocol', PROTOCOLS, 'TCP');
    const port = section.integer('port', 0, 65_535) ?? 0;
    if (port !== 0) ports.push({ name, protocol, port });
  }
  return ports;
}

type Columns = Pick<EndpointSliceRow, 'count' | 'addresses' | 'conditions' | 'nodeNames' | 'zoneHints' | 'nodeHints'>;

function readEndpoints(fields: Fields, family: Family, names: Interner): Columns {
  const given = fields.raw('endpoints');
  const columns = given instanceof EndpointColumns ? given : collect(fields, family, names);
  const { count, hinted } = columns;
  return {
    count,
    addresses: columns.copyAddresses(),
    conditions: names.column(columns.conditions, count),
    nodeNames: columns.copyNodeNames(),
    zoneHints: hinted ? hintColumn(columns.zones, count, names) : null,
    nodeHints: hinted ? hintColumn(columns.nodes, count, names) : null,
  };
}

/** No column at all unless an endpoint has some. */
function hintColumn(
  hints: (readonly string[])[],
  count: number,
  names: Interner,
): readonly (readonly string[])[] | null {
  let column: (readonly string[])[] | null = null;
  for (let index = 0; index < count; index++) {
    const named = hints[index] ?? NO_HINTS;
    if (named.length === 0) continue;
    column ??= new Array<readonly string[]>(count).fill(NO_HINTS);
    // Written back as well: what stays there until the next slice must not be a window on a whole file.
    column[index] = hints[index] = names.list(named);
  }
  return column;
}

/** The endpoints of the list that is being read. */
const listed = new EndpointColumns();

function collect(fields: Fields, family: Family, names: Interner): EndpointColumns {
  listed.clear(family);
  const endpoints = fields.list('endpoints');
  for (let index = 0; index < endpoints.length; index++) {
    if (takePlain(endpoints[index], names)) continue;
    const endpoint = fields.item('endpoints', index);
    if (endpoint !== null) takeOdd(endpoint, family, names);
  }
  return listed;
}

/** Takes an endpoint without hints that nothing is to be said about, as most are. False, and nothing taken, for any other. */
function takePlain(endpoint: unknown, names: Interner): boolean {
  if (!isMapping(endpoint)) return false;
  const { addresses, conditions, nodeName, hints } = endpoint;
  if (!Array.isArray(addresses) || (hints ?? null) !== null) return false;
  const address: unknown = addresses[0];
  if (typeof address !== 'string' || !listed.packText(address) || listed.special !== null) return false;
  const flags = plainConditions(conditions);
  const name = nodeName ?? '';
  if (flags === null || typeof name !== 'string') return false;
  listed.add(flags, name === '' ? null : names.text(name), NO_HINTS, NO_HINTS);
  return true;
}

/** Null when one of them is neither true nor false. */
function plainConditions(conditions: unknown): number | null {
  if ((conditions ?? null) === null) return conditionFlags(null, null, null);
  if (!isMapping(conditions)) return null;
  const { ready, serving, terminating } = conditions;
  return isFlag(ready) && isFlag(serving) && isFlag(terminating) ? conditionFlags(ready, serving, terminating) : null;
}

function isFlag(value: unknown): value is boolean | null | undefined {
  return typeof value === 'boolean' || (value ?? null) === null;
}

/** Takes an endpoint, or notes why it cannot be used (behaviour EP-04). */
function takeOdd(endpoint: Fields, family: Family, names: Interner): void {
  const text = firstAddress(endpoint);
  if (text === null) return;
  const packed = listed.packText(text);
  if (!packed || listed.special !== null) {
    const reason = packed ? `is ${listed.special ?? ''}` : `is not an ${family} address`;
    endpoint.warn('addresses[0]', text, `${reason}: the endpoint is left out`);
  } else {
    const name = endpoint.string('nodeName') ?? '';
    const hints = endpoint.lacks('hints') ? null : endpoint.section('hints');
    listed.add(
      readConditions(endpoint),
      name === '' ? null : names.text(name),
      hintedNames(hints, 'forZones'),
      hintedNames(hints, 'forNodes'),
    );
  }
}

function readConditions(endpoint: Fields): number {
  if (endpoint.lacks('conditions')) return conditionFlags(null, null, null);
  const conditions = endpoint.section('conditions');
  return conditionFlags(conditions.boolean('ready'), conditions.boolean('serving'), conditions.boolean('terminating'));
}

function hintedNames(hints: Fields | null, field: 'forZones' | 'forNodes'): readonly string[] {
  return hints === null || hints.lacks(field)
    ? NO_HINTS
    : hints.sections(field).map((hint) => hint.requiredString('name'));
}

function firstAddress(endpoint: Fields): string | null {
  const first = endpoint.list('addresses')[0] ?? null;
  if (typeof first === 'string') return first;
  if (first === null) endpoint.warn('addresses', null, 'has no address: the endpoint is left out');
  else endpoint.refuse('addresses[0]', first, 'must be a string');
  return null;
}

const NO_HINTS: readonly string[] = [];
