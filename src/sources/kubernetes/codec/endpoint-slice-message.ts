import { READY, SERVING, TERMINATING } from '../../../state/rows.js';
import { conditionFlags, EndpointColumns } from '../../translate/endpoint-columns.js';
import type { Metadata } from './metadata.js';
import { append, BYTES, tagOf, VARINT, type Cursor } from './wire.js';

/** Field numbers of discovery.k8s.io/v1. */
const SLICE = { ENDPOINTS: tagOf(2, BYTES), PORTS: tagOf(3, BYTES), ADDRESS_TYPE: tagOf(4, BYTES) };
const ENDPOINT = {
  ADDRESSES: tagOf(1, BYTES),
  CONDITIONS: tagOf(2, BYTES),
  NODE_NAME: tagOf(6, BYTES),
  HINTS: tagOf(8, BYTES),
};
const CONDITIONS = { READY: tagOf(1, VARINT), SERVING: tagOf(2, VARINT), TERMINATING: tagOf(3, VARINT) };
const HINTS = { FOR_ZONES: tagOf(1, BYTES), FOR_NODES: tagOf(2, BYTES) };
const HINT = { NAME: tagOf(1, BYTES) };
const PORT = { NAME: tagOf(1, BYTES), PROTOCOL: tagOf(2, BYTES), PORT: tagOf(3, VARINT) };

interface Conditions {
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
}

interface Hint {
  readonly name: string;
}

interface Hints {
  readonly forZones: Hint[];
  readonly forNodes: Hint[];
}

interface Endpoint {
  /** The first address only: the others mean nothing to a proxy. */
  addresses: readonly string[];
  conditions: Conditions | null;
  nodeName: string | null;
  hints: Hints | null;
}

interface Port {
  name: string | null;
  protocol: string | null;
  port: number | null;
}

/** Reads the endpoints to columns, and to a list of plain objects only when something about one of them is unusual. */
export function readEndpointSlice(cursor: Cursor, metadata: Metadata): unknown {
  usual.clear('IPv4');
  const slice = readSlice(cursor, metadata, usual, addEndpoint);
  if (slice !== null && (usual.count === 0 || usual.family === slice.addressType)) return slice;
  cursor.rewind();
  return readSlice(cursor, metadata, new Array<Endpoint>(), listEndpoint);
}

interface Slice<E> {
  readonly metadata: Metadata;
  addressType: string;
  readonly endpoints: E;
  ports: Port[] | null;
}

/** Null when an endpoint was not taken. */
function readSlice<E>(
  cursor: Cursor,
  metadata: Metadata,
  endpoints: E,
  take: (cursor: Cursor, endpoints: E) => boolean,
): Slice<E> | null {
  const slice: Slice<E> = { metadata, addressType: '', endpoints, ports: null };
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === SLICE.ENDPOINTS) {
      if (!take(cursor, endpoints)) return null;
    } else if (tag === SLICE.PORTS) slice.ports = append(slice.ports, readPort(cursor));
    else if (tag === SLICE.ADDRESS_TYPE) slice.addressType = cursor.sharedText();
    else cursor.skip(tag);
  }
  return slice;
}

/** The endpoints of the slice that is being read. */
const usual = new EndpointColumns();

/** False when there is something unusual about the endpoint. */
function addEndpoint(cursor: Cursor, columns: EndpointColumns): boolean {
  let addressed = false;
  let flags = conditionFlags(null, null, null);
  let nodeName: string | null = null;
  let hints: Hints | null = null;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === ENDPOINT.ADDRESSES && !addressed) {
      if (!takeAddress(cursor, columns)) return false;
      addressed = true;
    } else if (tag === ENDPOINT.CONDITIONS) flags = readFlags(cursor);
    else if (tag === ENDPOINT.NODE_NAME) nodeName = cursor.sharedText();
    else if (tag === ENDPOINT.HINTS) hints = readHints(cursor);
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  if (!addressed) return false;
  const zones = hints === null ? NO_NAMES : namesOf(hints.forZones);
  const nodes = hints === null ? NO_NAMES : namesOf(hints.forNodes);
  if (zones.includes('') || nodes.includes('')) return false;
  columns.add(flags, nodeName === '' ? null : nodeName, zones, nodes);
  return true;
}

/** Packs the text that comes next. The first address of a slice tells the family of all. False when it cannot be used. */
function takeAddress(cursor: Cursor, columns: EndpointColumns): boolean {
  const start = cursor.pass();
  const { source, position: end } = cursor;
  if (columns.count === 0) columns.clear(source.subarray(start, end).includes(COLON) ? 'IPv6' : 'IPv4');
  const packed =
    columns.family === 'IPv4'
      ? columns.packDotted(source, start, end)
      : columns.packText(source.toString('latin1', start, end));
  return packed && columns.special === null;
}

function namesOf(hints: readonly Hint[]): readonly string[] {
  return hints.length === 0 ? NO_NAMES : hints.map(({ name }) => name);
}

function readFlags(cursor: Cursor): number {
  let ready: boolean | null = null;
  let serving: boolean | null = null;
  let terminating: boolean | null = null;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === CONDITIONS.READY) ready = cursor.boolean();
    else if (tag === CONDITIONS.SERVING) serving = cursor.boolean();
    else if (tag === CONDITIONS.TERMINATING) terminating = cursor.boolean();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return conditionFlags(ready, serving, terminating);
}

const COLON = 0x3a;
const NO_NAMES: readonly string[] = [];
const NO_ADDRESS: readonly string[] = [];

function listEndpoint(cursor: Cursor, endpoints: Endpoint[]): boolean {
  endpoints.push(readEndpoint(cursor));
  return true;
}

function readEndpoint(cursor: Cursor): Endpoint {
  const endpoint: Endpoint = { addresses: NO_ADDRESS, conditions: null, nodeName: null, hints: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === ENDPOINT.ADDRESSES && endpoint.addresses.length === 0) endpoint.addresses = [cursor.text()];
    else if (tag === ENDPOINT.CONDITIONS) endpoint.conditions = readConditions(cursor);
    else if (tag === ENDPOINT.NODE_NAME) endpoint.nodeName = cursor.sharedText();
    else if (tag === ENDPOINT.HINTS) endpoint.hints = readHints(cursor);
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return endpoint;
}

function readConditions(cursor: Cursor): Conditions {
  const flags = readFlags(cursor);
  return {
    ready: (flags & READY) !== 0,
    serving: (flags & SERVING) !== 0,
    terminating: (flags & TERMINATING) !== 0,
  };
}

function readHints(cursor: Cursor): Hints {
  const hints: Hints = { forZones: [], forNodes: [] };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === HINTS.FOR_ZONES) hints.forZones.push(readHint(cursor));
    else if (tag === HINTS.FOR_NODES) hints.forNodes.push(readHint(cursor));
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return hints;
}

function readHint(cursor: Cursor): Hint {
  let name = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === HINT.NAME) name = cursor.sharedText();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return { name };
}

function readPort(cursor: Cursor): Port {
  const port: Port = { name: null, protocol: null, port: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === PORT.NAME) port.name = cursor.sharedText();
    else if (tag === PORT.PROTOCOL) port.protocol = cursor.sharedText();
    else if (tag === PORT.PORT) port.port = cursor.integer();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return port;
}
