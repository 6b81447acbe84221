import type { Metadata } from './metadata.js';
import { BYTES, tagOf, VARINT, type Cursor } from './wire.js';

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
  ready: boolean | null;
  serving: boolean | null;
  terminating: boolean | null;
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

export function readEndpointSlice(cursor: Cursor, metadata: Metadata): unknown {
  const slice = { metadata, addressType: '', endpoints: new Array<Endpoint>(), ports: new Array<Port>() };
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === SLICE.ENDPOINTS) slice.endpoints.push(readEndpoint(cursor));
    else if (tag === SLICE.PORTS) slice.ports.push(readPort(cursor));
    else if (tag === SLICE.ADDRESS_TYPE) slice.addressType = cursor.text();
    else cursor.skip(tag);
  }
  return slice;
}

const NO_ADDRESS: readonly string[] = [];

function readEndpoint(cursor: Cursor): Endpoint {
  const endpoint: Endpoint = { addresses: NO_ADDRESS, conditions: null, nodeName: null, hints: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === ENDPOINT.ADDRESSES && endpoint.addresses.length === 0) endpoint.addresses = [cursor.text()];
    else if (tag === ENDPOINT.CONDITIONS) endpoint.conditions = readConditions(cursor);
    else if (tag === ENDPOINT.NODE_NAME) endpoint.nodeName = cursor.text();
    else if (tag === ENDPOINT.HINTS) endpoint.hints = readHints(cursor);
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return endpoint;
}

function readConditions(cursor: Cursor): Conditions {
  const conditions: Conditions = { ready: null, serving: null, terminating: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === CONDITIONS.READY) conditions.ready = cursor.boolean();
    else if (tag === CONDITIONS.SERVING) conditions.serving = cursor.boolean();
    else if (tag === CONDITIONS.TERMINATING) conditions.terminating = cursor.boolean();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return conditions;
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
    if (tag === HINT.NAME) name = cursor.text();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return { name };
}

function readPort(cursor: Cursor): Port {
  const port: Port = { name: null, protocol: null, port: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === PORT.NAME) port.name = cursor.text();
    else if (tag === PORT.PROTOCOL) port.protocol = cursor.text();
    else if (tag === PORT.PORT) port.port = cursor.integer();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return port;
}
