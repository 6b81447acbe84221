import type { ApiObject } from '../api-objects.js';
import { MAGIC, messageOf } from './protobuf.js';
import { TYPE_META, type Field, type Message, type Scalar } from './protobuf-schema.js';

/** The values of each field, in their order: a number, or the bytes of anything else, numbers of fixed width too. */
export type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

/** Reads an object that a client posts in protobuf, envelope and all, to what the same object is in JSON. */
export function decodeObject(bytes: Buffer): ApiObject {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new TypeError('not an object in protobuf');
  const envelope = fieldsOf(bytes.subarray(MAGIC.length));
  const { apiVersion, kind } = decodeMessage(TYPE_META, bytesOf(envelope, 1));
  return {
    apiVersion,
    kind,
    ...decodeMessage(messageOf(String(kind), String(apiVersion)), bytesOf(envelope, 2)),
  };
}

/** Of values that are always written those that are empty are left out, as from JSON. */
function decodeMessage(message: Message, bytes: Buffer): ApiObject {
  const fields = fieldsOf(bytes);
  const object: Record<string, unknown> = {};
  for (const field of message) {
    const values = (fields.get(field.number) ?? []).map((value) => decodeValue(field, value));
    const [first] = values;
    if (first === undefined) continue;
    if (field.mode === 'repeated') object[field.name] = values;
    else if (field.mode === 'map') object[field.name] = Object.fromEntries(values as [string, string][]);
    else if (field.mode === 'present' || !isEmpty(first)) object[field.name] = first;
  }
  return object;
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === '' || value === 0 || value === false;
}

function decodeValue({ type, mode }: Field, value: bigint | Buffer): unknown {
  if (typeof value === 'bigint') return type === 'boolean' ? value !== 0n : Number(BigInt.asIntN(64, value));
  if (mode === 'map') {
    const entry = fieldsOf(value);
    return [bytesOf(entry, 1).toString(), bytesOf(entry, 2).toString()];
  }
  return typeof type === 'string' ? decodeScalar(type, value) : decodeMessage(type, value);
}

function decodeScalar(type: Scalar, bytes: Buffer): unknown {
  if (type === 'text') return bytes.toString();
  if (type !== 'time' && type !== 'microTime') throw new TypeError(`a ${type} is not read here`);
  const fields = fieldsOf(bytes);
  const number = (field: number): bigint => (fields.get(field)?.at(-1) ?? 0n) as bigint;
  if (fields.size === 0) return '';
  const seconds = new Date(Number(BigInt.asIntN(64, number(1))) * 1000).toISOString().slice(0, 19);
  return type === 'time' ? `${seconds}Z` : `${seconds}.${String(number(2) / 1000n).padStart(6, '0')}Z`;
}

function bytesOf(fields: Fields, number: number): Buffer {
  const value = fields.get(number)?.at(-1);
  return value instanceof Buffer ? value : Buffer.alloc(0);
}

export function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    if (![0, 1, 2, 5].includes(wire)) throw new TypeError(`wire type ${wire} is not read here`);
    const number = wire === 1 ? 8n : wire === 5 ? 4n : varint();
    const values = fields.get(tag >> 3) ?? [];
    fields.set(tag >> 3, values);
    if (wire === 0) values.push(number);
    else {
      if (number > bytes.length - at) throw new RangeError('a field ends after its message');
      values.push(bytes.subarray(at, at + Number(number)));
      at += Number(number);
    }
  }
  return fields;
}
