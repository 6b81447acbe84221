import { packAddress } from '../../net/pack-address.js';
import { addressLength, type Family } from '../../net/ip.js';
import { PROTOCOLS } from '../../net/protocol.js';
import { READY, SERVING, TERMINATING, type EndpointPortRow, type EndpointSliceRow } from '../../state/rows.js';
import { Fields, isMapping } from './fields.js';
import { ownCopy, type Interner } from './intern.js';
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
    return { ref, row: null, warnings: fields.findings.warnings };
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
    name: ownCopy(ref.name),
    serviceName: names.text(serviceName),
    family: addressType,
    lastChangeTriggerTime: readTriggerTime(fields),
    ports: names.ports(ports),
    ...columns,
  };
  return { ref, row, warnings: fields.findings.warnings };
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
  const ports: EndpointPortRow[] = [];
  const seen = new Set<string>();
  for (const section of fields.sections('ports')) {
    const name = section.string('name') ?? '';
    if (name !== '') checkName(section, 'name', name, 'label');
    if (seen.has(name)) section.refuse('name', name, 'must not be used by two ports of one slice');
    seen.add(name);
    const protocol = section.choice('protocol', PROTOCOLS, 'TCP');
    const port = section.integer('port', 0, 65_535) ?? 0;
    if (port !== 0) ports.push({ name, protocol, port });
  }
  return ports;
}

type Columns = Pick<EndpointSliceRow, 'count' | 'addresses' | 'conditions' | 'nodeNames' | 'zoneHints' | 'nodeHints'>;

function readEndpoints(fields: Fields, family: Family, names: Interner): Columns {
  const endpoints = fields.sections('endpoints');
  const size = addressLength(family);
  if (packed.length < endpoints.length * size) packed = new Uint8Array(endpoints.length * size);
  const used: Fields[] = [];
  for (const endpoint of endpoints) if (packEndpoint(endpoint, family, used.length * size)) used.push(endpoint);
  const addresses = packed.slice(0, used.length * size);
  // What is packed has been copied: its room serves for the conditions.
  const conditions = packed;
  const nodeNames = new Array<string | null>(used.length).fill(null);
  const zoneHints = new HintColumn('forZones', used.length, names);
  const nodeHints = new HintColumn('forNodes', used.length, names);
  let index = -1;
  for (const endpoint of used) {
    conditions[++index] = readConditions(endpoint);
    const nodeName = endpoint.string('nodeName') ?? '';
    if (nodeName !== '') nodeNames[index] = names.text(nodeName);
    if (endpoint.lacks('hints')) continue;
    const hints = endpoint.section('hints');
    zoneHints.read(index, hints);
    nodeHints.read(index, hints);
  }
  return {
    count: used.length,
    addresses,
    conditions: names.column(conditions.subarray(0, used.length)),
    nodeNames,
    zoneHints: zoneHints.column,
    nodeHints: nodeHints.column,
  };
}

/** Addresses of the slice that is being read: how many of its endpoints can be used is known only at its end. */
let packed = new Uint8Array(1024);

/** Packs the endpoint's first address at `offset` of `packed`. False, after noting why, when it cannot be used (behaviour EP-04). */
function packEndpoint(endpoint: Fields, family: Family, offset: number): boolean {
  const text = firstAddress(endpoint);
  if (text === null) return false;
  if (!packAddress(text, family, packed, offset)) {
    endpoint.warn('addresses[0]', text, `is not an ${family} address: the endpoint is left out`);
    return false;
  }
  const end = offset + addressLength(family);
  for (let at = offset; at < end; at++) if (packed[at] !== 0) return true;
  endpoint.warn('addresses[0]', text, 'is the unspecified address: the endpoint is left out');
  return false;
}

function firstAddress(endpoint: Fields): string | null {
  const first = endpoint.list('addresses')[0] ?? null;
  if (typeof first === 'string') return first;
  if (first === null) endpoint.warn('addresses', null, 'has no address: the endpoint is left out');
  else endpoint.refuse('addresses[0]', first, 'must be a string');
  return null;
}

/** Behaviour EP-05: absent means ready, serving, not terminating. */
function readConditions(endpoint: Fields): number {
  if (endpoint.lacks('conditions')) return READY | SERVING;
  const conditions = endpoint.section('conditions');
  return (
    ((conditions.boolean('ready') ?? true) ? READY : 0) |
    ((conditions.boolean('serving') ?? true) ? SERVING : 0) |
    ((conditions.boolean('terminating') ?? false) ? TERMINATING : 0)
  );
}

/** One kind of hints of every endpoint; no column at all until an endpoint has some. */
class HintColumn {
  column: (readonly string[])[] | null = null;

  constructor(
    private readonly field: 'forZones' | 'forNodes',
    private readonly count: number,
    private readonly names: Interner,
  ) {}

  read(index: number, hints: Fields): void {
    if (hints.lacks(this.field)) return;
    const named = hints.sections(this.field).map((hint) => hint.requiredString('name'));
    if (named.length === 0) return;
    this.column ??= new Array<readonly string[]>(this.count).fill(NO_HINTS);
    this.column[index] = this.names.list(named);
  }
}

const NO_HINTS: readonly string[] = [];
