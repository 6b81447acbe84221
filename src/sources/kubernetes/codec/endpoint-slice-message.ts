import type { EndpointSliceRow } from '../../../state/rows.js';
import { conditionFlags, EndpointSliceBuilder, targetFlags } from '../../translate/endpoint-slice-builder.js';
import { Fields } from '../../translate/fields.js';
import type { Interner } from '../../translate/intern.js';
import type { Translation } from '../../translate/metadata.js';
import type { Metadata } from './metadata.js';
import { append, BYTES, tagOf, VARINT, type Cursor } from './wire.js';

/** Field numbers of discovery.k8s.io/v1. */
const SLICE = { ENDPOINTS: tagOf(2, BYTES), PORTS: tagOf(3, BYTES), ADDRESS_TYPE: tagOf(4, BYTES) };
const ENDPOINT = {
  ADDRESSES: tagOf(1, BYTES),
  CONDITIONS: tagOf(2, BYTES),
  TARGET_REF: tagOf(4, BYTES),
  NODE_NAME: tagOf(6, BYTES),
  ZONE: tagOf(7, BYTES),
  HINTS: tagOf(8, BYTES),
};
const CONDITIONS = { READY: tagOf(1, VARINT), SERVING: tagOf(2, VARINT), TERMINATING: tagOf(3, VARINT) };
const TARGET_REF = { KIND: tagOf(1, BYTES), NAME: tagOf(3, BYTES) };
const HINTS = { FOR_ZONES: tagOf(1, BYTES), FOR_NODES: tagOf(2, BYTES) };
const HINT = { NAME: tagOf(1, BYTES) };
const PORT = { NAME: tagOf(1, BYTES), PROTOCOL: tagOf(2, BYTES), PORT: tagOf(3, VARINT) };

interface Port {
  name: string | null;
  protocol: string | null;
  port: number | null;
}

/** Drives the builder: the slice's own fields first, as what its endpoints are checked by comes after them. */
export function translateEndpointSlice(
  cursor: Cursor,
  metadata: Metadata,
  names: Interner,
): Translation<EndpointSliceRow> {
  const slice = new EndpointSliceBuilder(Fields.of(readHead(cursor, metadata)), names);
  if (slice.used) {
    cursor.rewind();
    let index = 0;
    for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
      if (tag === SLICE.ENDPOINTS) readEndpoint(cursor, slice, index++);
      else cursor.skip(tag);
    }
  }
  return slice.finish();
}

interface Head {
  readonly metadata: Metadata;
  addressType: string;
  ports: Port[] | null;
}

/** All of a slice but its endpoints. */
function readHead(cursor: Cursor, metadata: Metadata): Head {
  const head: Head = { metadata, addressType: '', ports: null };
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === SLICE.PORTS) head.ports = append(head.ports, readPort(cursor));
    else if (tag === SLICE.ADDRESS_TYPE) head.addressType = cursor.sharedText();
    else cursor.skip(tag);
  }
  return head;
}

function readEndpoint(cursor: Cursor, slice: EndpointSliceBuilder, index: number): void {
  let address = NOWHERE;
  let addressEnd = NOWHERE;
  let conditions = conditionFlags(null, null, null);
  let target = 0;
  let nodeName = '';
  let zone = '';
  let hints = NO_HINTS;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === ENDPOINT.ADDRESSES && address === NOWHERE) {
      address = cursor.pass();
      addressEnd = cursor.position;
    } else if (tag === ENDPOINT.CONDITIONS) conditions = readConditions(cursor);
    else if (tag === ENDPOINT.TARGET_REF) target = readTarget(cursor);
    else if (tag === ENDPOINT.NODE_NAME) nodeName = cursor.sharedText();
    else if (tag === ENDPOINT.ZONE) zone = cursor.sharedText();
    else if (tag === ENDPOINT.HINTS) hints = readHints(cursor);
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  const taken =
    address === NOWHERE ? slice.address(index, null) : slice.addressAt(index, cursor.source, address, addressEnd);
  if (!taken) return;
  if (target !== 0) slice.podAt(cursor.source, targetName.start, targetName.end);
  slice.endpoint(conditions | target, nodeName, zone, hints.forZones ?? NO_NAMES, hints.forNodes ?? NO_NAMES);
}

const NOWHERE = -1;

function readConditions(cursor: Cursor): number {
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

/** Where the name is of the target that was read last. One is enough: an object for each endpoint would be garbage. */
const targetName = { start: 0, end: 0 };

function readTarget(cursor: Cursor): number {
  let kind: string | null = null;
  targetName.start = targetName.end = 0;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === TARGET_REF.KIND) kind = cursor.sharedText();
    else if (tag === TARGET_REF.NAME) {
      targetName.start = cursor.pass();
      targetName.end = cursor.position;
    } else cursor.skip(tag);
  }
  cursor.leave(outer);
  return targetFlags(kind);
}

/** Names of zones and of nodes; null: none. */
interface Hints {
  forZones: string[] | null;
  forNodes: string[] | null;
}

const NO_HINTS: Hints = { forZones: null, forNodes: null };
const NO_NAMES: readonly string[] = [];

function readHints(cursor: Cursor): Hints {
  const hints: Hints = { forZones: null, forNodes: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === HINTS.FOR_ZONES) hints.forZones = append(hints.forZones, readHint(cursor));
    else if (tag === HINTS.FOR_NODES) hints.forNodes = append(hints.forNodes, readHint(cursor));
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return hints;
}

function readHint(cursor: Cursor): string {
  let name = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === HINT.NAME) name = cursor.sharedText();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return name;
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
