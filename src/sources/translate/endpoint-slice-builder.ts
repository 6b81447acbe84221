import { isMapping } from '../../base/mapping.js';
import { PROTOCOLS } from '../../base/protocol.js';
import { parseTimestamp } from '../../base/timestamp.js';
import {
  POD,
  READY,
  SERVING,
  TERMINATING,
  type EndpointPortRow,
  type EndpointSliceRow,
  type RowRef,
} from '../../state/rows.js';
import { readWeight } from './balance.js';
import { EndpointColumns } from './endpoint-columns.js';
import { Fields } from './fields.js';
import type { Interner } from './intern.js';
import { checkName, LONGEST_LABEL, LONGEST_NAME, readRef, type Translation } from './metadata.js';

const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
const HEADLESS_LABEL = 'service.kubernetes.io/headless';
const TRIGGER_TIME_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';
const ADDRESS_TYPES = ['IPv4', 'IPv6', 'FQDN'] as const;

/** Behaviour EP-05: an absent condition means ready, serving, not terminating. */
export function conditionFlags(ready: boolean | null, serving: boolean | null, terminating: boolean | null): number {
  return ((ready ?? true) ? READY : 0) | ((serving ?? true) ? SERVING : 0) | ((terminating ?? false) ? TERMINATING : 0);
}

/** {@link POD} for an endpoint whose `targetRef` is of this kind. */
export function targetFlags(kind: unknown): number {
  return kind === 'Pod' ? POD : 0;
}

const NO_ZONES: readonly string[] = [];

/** The most characters of a hint. */
const HINTS = { forZones: LONGEST_LABEL, forNodes: LONGEST_NAME } as const;

/** The endpoints of the slice that is being built, which is one at a time. */
const columns = new EndpointColumns();

/**
 * Builds the row of a discovery.k8s.io/v1 EndpointSlice, checks it and applies the API's defaults. It is given the object but for its endpoints; these are
 * handed over one by one, as no list of them need ever be, and {@link finish} ends it. Row null for slices of headless Services (behaviour WA-03), slices that
 * name no Service (EP-01), and slices of host names (EP-02).
 */
export class EndpointSliceBuilder {
  private readonly ref: RowRef;
  /** All of the row but its endpoints; null: the slice is not used. */
  private readonly head: Pick<EndpointSliceRow, 'serviceName' | 'family' | 'ports'> | null;
  /** Name of its Service; empty: it names none. */
  private readonly service: string;
  /** The place of the present endpoint in the object's list. */
  private index = 0;

  constructor(
    private readonly fields: Fields,
    private readonly names: Interner,
  ) {
    this.ref = readRef(fields, 'EndpointSlice');
    const labels = fields.section('metadata').section('labels');
    const isHeadless = labels.has(HEADLESS_LABEL);
    this.service = isHeadless ? '' : (labels.string(SERVICE_NAME_LABEL) ?? '');
    this.head = isHeadless ? null : readHead(fields, labels, this.service);
    columns.clear(this.head?.family ?? 'IPv4');
  }

  /** False: the endpoints are not needed. */
  get used(): boolean {
    return this.head !== null;
  }

  /**
   * The first address of the endpoint at a place in the list; the others mean nothing to a proxy. Null: it has none. False when the endpoint is left out,
   * which is noted (behaviour EP-04).
   */
  address(index: number, text: string | null): boolean {
    this.index = index;
    if (text === null) {
      this.fields.warn(`endpoints[${index}].addresses`, null, 'has no address: the endpoint is left out');
      return false;
    }
    const packed = columns.packText(text);
    const special = packed ? columns.special : null;
    if (packed && special === null) return true;
    const reason = special === null ? `is not an ${this.head?.family ?? ''} address` : `is ${special}`;
    this.fields.warn(`endpoints[${index}].addresses[0]`, text, `${reason}: the endpoint is left out`);
    return false;
  }

  /** As {@link address}, from its characters: most need no string. */
  addressAt(index: number, characters: Buffer, start: number, end: number): boolean {
    if (!columns.packDotted(characters, start, end) || columns.special !== null) {
      return this.address(index, characters.toString('utf8', start, end));
    }
    this.index = index;
    return true;
  }

  /** The name of the pod that the endpoint is whose address was taken last. */
  pod(name: string): void {
    columns.pods.nextText(name);
  }

  /** As {@link pod}, from its characters. */
  podAt(characters: Buffer, start: number, end: number): void {
    columns.pods.next(characters, start, end);
  }

  /**
   * The rest of the endpoint whose address was taken last.
   *
   * @param conditions by {@link conditionFlags} and {@link targetFlags}.
   * @param nodeName a string that other endpoints of the node have too; empty: it names none.
   * @param zone where it is; empty: it names none.
   * @param zones that it is meant for, @param nodes as well; null: a hint without a name.
   */
  endpoint(
    conditions: number,
    nodeName: string,
    zone: string,
    zones: readonly (string | null)[],
    nodes: readonly (string | null)[],
  ): void {
    if (!this.areNames('forZones', zones) || !this.areNames('forNodes', nodes)) return;
    const isNamed = this.isName('nodeName', nodeName, LONGEST_NAME);
    const isZone = this.isName('zone', zone, LONGEST_LABEL);
    columns.add(conditions, isNamed ? nodeName : null, isZone ? zone : '', zones, nodes);
  }

  /** @throws TranslateError naming every field that is wrong. */
  finish(): Translation<EndpointSliceRow> {
    const { fields, names, ref, head, service } = this;
    fields.check(service === '' ? null : service);
    const warnings = fields.findings.warnings.all();
    if (head === null) return { ref, row: null, warnings, ...(service === '' ? {} : { service }) };
    const { count, addresses, conditions, nodeNames, zoneHints, nodeHints, zoneNames, zones, pods } =
      columns.copy(names);
    const row: EndpointSliceRow = {
      kind: 'EndpointSlice',
      namespace: names.text(ref.namespace),
      name: names.own(ref.name),
      serviceName: names.text(head.serviceName),
      family: head.family,
      lastChangeTriggerTime: readTriggerTime(fields),
      ports: names.ports(head.ports),
      count,
      addresses,
      conditions,
      nodeNames,
      zoneHints,
      nodeHints,
      zoneNames: zoneNames ?? NO_ZONES,
      zones: zones ?? '',
      pods: pods ?? '',
    };
    const weight = readWeight(fields.section('metadata'));
    // Rows of most slices are of one shape.
    return { ref, row: weight === null ? row : { ...row, ...weight }, warnings, service };
  }

  /** False for none, and for a longer one than there can be, which is noted. */
  private isName(field: 'nodeName' | 'zone', name: string, most: number): boolean {
    if (name === '' || name.length <= most) return name !== '';
    this.fields.warn(`endpoints[${this.index}].${field}`, name, `has more than ${most} characters: it counts as none`);
    return false;
  }

  /** Notes the names that are missing or longer than any. */
  private areNames(field: keyof typeof HINTS, names: readonly (string | null)[]): names is readonly string[] {
    let all = true;
    for (let place = 0; place < names.length; place++) {
      const name = names[place] ?? null;
      const isThere = name !== null && name !== '';
      if (isThere && name.length <= HINTS[field]) continue;
      const detail = isThere ? `must have at most ${HINTS[field]} characters` : 'is required';
      this.fields.refuse(`endpoints[${this.index}].hints.${field}[${place}].name`, name, detail);
      all = false;
    }
    return all;
  }
}

/** Null when the slice is not used. */
function readHead(
  fields: Fields,
  labels: Fields,
  serviceName: string,
): Pick<EndpointSliceRow, 'serviceName' | 'family' | 'ports'> | null {
  const addressType = readAddressType(fields);
  if (serviceName === '') {
    labels.warn(SERVICE_NAME_LABEL, null, 'names no Service: the slice is not used');
    return null;
  }
  checkName(labels, SERVICE_NAME_LABEL, serviceName, 'label');
  if (addressType === 'FQDN') {
    fields.warn('addressType', addressType, 'host names are not supported: the slice is not used');
    return null;
  }
  return { serviceName, family: addressType, ports: readPorts(fields) };
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

/** Metrics are not worth refusing a slice for: a time that cannot be read counts as none. */
function readTriggerTime(fields: Fields): number | null {
  const metadata = fields.raw('metadata');
  const annotations = isMapping(metadata) ? metadata['annotations'] : null;
  const text = isMapping(annotations) ? annotations[TRIGGER_TIME_ANNOTATION] : null;
  return typeof text === 'string' ? parseTimestamp(text) : null;
}
