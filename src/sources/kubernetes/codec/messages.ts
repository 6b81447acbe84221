import type { Row, RowKind } from '../../../state/rows.js';
import type { Interner } from '../../translate/intern.js';
import type { Translation } from '../../translate/metadata.js';
import { translateNode } from '../../translate/node.js';
import { translateServiceCIDR } from '../../translate/service-cidr.js';
import { translateService } from '../../translate/service.js';
import type { Metadata } from './metadata.js';
import { translateEndpointSlice } from './endpoint-slice-message.js';
import { readService } from './service-message.js';
import { BYTES, tagOf, type Cursor } from './wire.js';

/** Every kind has its metadata in field 1. */
export const METADATA = tagOf(1, BYTES);

/**
 * Translates the message at the cursor, whose metadata has been read before. The endpoints of a slice go to its builder one by one; any other object is
 * read to the form that its translator takes.
 *
 * @throws CodecError when the bytes are not such a message, TranslateError naming every field that is wrong.
 */
export function translateMessage(kind: RowKind, cursor: Cursor, metadata: Metadata, names: Interner): Translation<Row> {
  switch (kind) {
    case 'Service':
      return translateService(readService(cursor, metadata), names);
    case 'EndpointSlice':
      return translateEndpointSlice(cursor, metadata, names);
    case 'Node':
      return translateNode(readNode(cursor, metadata), names);
    case 'ServiceCIDR':
      return translateServiceCIDR(readServiceCIDR(cursor, metadata), names);
  }
}

const NODE = { SPEC: tagOf(2, BYTES), STATUS: tagOf(3, BYTES) };
const NODE_SPEC = { POD_CIDR: tagOf(1, BYTES), TAINTS: tagOf(5, BYTES), POD_CIDRS: tagOf(7, BYTES) };
const NODE_STATUS = { ADDRESSES: tagOf(5, BYTES) };

interface NodeSpec {
  podCIDR: string;
  readonly podCIDRs: string[];
  readonly taints: { readonly key: string }[];
}

interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

function readNode(cursor: Cursor, metadata: Metadata): unknown {
  const spec: NodeSpec = { podCIDR: '', podCIDRs: [], taints: [] };
  const addresses: NodeAddress[] = [];
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === NODE.SPEC) readNodeSpec(cursor, spec);
    else if (tag === NODE.STATUS) readNodeStatus(cursor, addresses);
    else cursor.skip(tag);
  }
  return { metadata, spec, status: { addresses } };
}

function readNodeSpec(cursor: Cursor, spec: NodeSpec): void {
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === NODE_SPEC.POD_CIDR) spec.podCIDR = cursor.text();
    else if (tag === NODE_SPEC.POD_CIDRS) spec.podCIDRs.push(cursor.text());
    else if (tag === NODE_SPEC.TAINTS) spec.taints.push({ key: readPair(cursor)[0] });
    else cursor.skip(tag);
  }
  cursor.leave(outer);
}

function readNodeStatus(cursor: Cursor, addresses: NodeAddress[]): void {
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === NODE_STATUS.ADDRESSES) {
      const [type, address] = readPair(cursor);
      addresses.push({ type, address });
    } else cursor.skip(tag);
  }
  cursor.leave(outer);
}

/** The texts in fields 1 and 2 of the nested message. */
function readPair(cursor: Cursor): readonly [string, string] {
  let first = '';
  let second = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === tagOf(1, BYTES)) first = cursor.text();
    else if (tag === tagOf(2, BYTES)) second = cursor.text();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return [first, second];
}

const SERVICE_CIDR = { SPEC: tagOf(2, BYTES) };
const SERVICE_CIDR_SPEC = { CIDRS: tagOf(1, BYTES) };

function readServiceCIDR(cursor: Cursor, metadata: Metadata): unknown {
  const cidrs: string[] = [];
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag !== SERVICE_CIDR.SPEC) {
      cursor.skip(tag);
      continue;
    }
    const outer = cursor.enter();
    for (let inner = cursor.tag(); inner !== 0; inner = cursor.tag()) {
      if (inner === SERVICE_CIDR_SPEC.CIDRS) cidrs.push(cursor.text());
      else cursor.skip(inner);
    }
    cursor.leave(outer);
  }
  return { metadata, spec: { cidrs } };
}
