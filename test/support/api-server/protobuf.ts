import type { ApiObject } from '../api-objects.js';
import { LIST_META, MESSAGES, TYPE_META, type Field, type Message, type Scalar } from './protobuf-schema.js';

/** Writes API objects, given as JSON has them, in the API server's protobuf encoding. */

export const MAGIC = Buffer.from('k8s\0', 'latin1');

/** What objects have been encoded to: a watch cache encodes each once as well. */
const encoded = new WeakMap<ApiObject, Buffer>();

/** One object in its envelope. */
export function encodeObject(object: ApiObject): Buffer {
  const held = encoded.get(object);
  if (held !== undefined) return held;
  const kind = String(object['kind']);
  const apiVersion = String(object['apiVersion']);
  const bytes = envelope(apiVersion, kind, encodeMessage(messageOf(kind, apiVersion), object));
  encoded.set(object, bytes);
  return bytes;
}

export interface ListParts {
  readonly apiVersion: string;
  /** Of the items. */
  readonly kind: string;
  readonly metadata: ApiObject;
  readonly items: readonly ApiObject[];
}

/** A list in its envelope. */
export function encodeList({ apiVersion, kind, metadata, items }: ListParts): Buffer {
  const message = messageOf(kind, apiVersion);
  const parts = [bytesField(1, encodeMessage(LIST_META, metadata))];
  for (const item of items) parts.push(bytesField(2, encodeMessage(message, item)));
  return envelope(apiVersion, `${kind}List`, Buffer.concat(parts));
}

/** A watch event as a frame: its length in four bytes, then the event. */
export function encodeWatchEvent(type: string, object: ApiObject): Buffer {
  const bytes = encodeObject(object);
  const raw = fieldStart(1, bytes.length);
  // The object is copied once: there may be tens of megabytes of them.
  const event = [bytesField(1, Buffer.from(type)), fieldStart(2, raw.length + bytes.length), raw, bytes];
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.reduce((sum, part) => sum + part.length, 0));
  return Buffer.concat([length, ...event]);
}

export function messageOf(kind: string, apiVersion: string): Message {
  const message = MESSAGES[kind] ?? MESSAGES[`${apiVersion}/${kind}`];
  if (message === undefined) throw new TypeError(`no protobuf message for kind ${kind}`);
  return message;
}

function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const typeMeta = encodeMessage(TYPE_META, { apiVersion, kind });
  const empty = Buffer.alloc(0);
  return Buffer.concat([
    MAGIC,
    bytesField(1, typeMeta),
    bytesField(2, raw),
    bytesField(3, empty),
    bytesField(4, empty),
  ]);
}

function encodeMessage(message: Message, value: unknown): Buffer {
  const fields = mapping(value);
  return Buffer.concat(message.flatMap((field) => encodeField(field, fields[field.name] ?? null)));
}

function encodeField(field: Field, value: unknown): readonly Buffer[] {
  switch (field.mode) {
    case 'always':
      return [encodeValue(field, value)];
    case 'present':
      return value === null ? [] : [encodeValue(field, value)];
    case 'repeated':
      return list(value).map((entry) => encodeValue(field, entry));
    case 'map':
      return Object.entries(mapping(value))
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([key, text]) =>
          bytesField(
            field.number,
            Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(String(text)))]),
          ),
        );
  }
}

function encodeValue({ number, type }: Field, value: unknown): Buffer {
  if (typeof type !== 'string') return bytesField(number, encodeMessage(type, value));
  return encodeScalar(number, type, value);
}

function encodeScalar(number: number, type: Scalar, value: unknown): Buffer {
  switch (type) {
    case 'text':
      return bytesField(number, Buffer.from(typeof value === 'string' ? value : ''));
    case 'integer':
      return integerField(number, typeof value === 'number' ? value : 0);
    case 'boolean':
      return integerField(number, value === true ? 1 : 0);
    case 'time':
    case 'microTime':
      return bytesField(number, encodeTime(value));
    case 'json':
      return bytesField(number, bytesField(1, Buffer.from(JSON.stringify(value))));
    case 'intOrString':
      return bytesField(number, encodeIntOrString(value));
  }
}

function encodeTime(value: unknown): Buffer {
  if (typeof value !== 'string') return Buffer.alloc(0);
  const seconds = Math.floor(Date.parse(value) / 1000);
  const micros = Number(/\.(\d{6})/.exec(value)?.[1] ?? 0);
  return Buffer.concat([integerField(1, seconds), integerField(2, micros * 1000)]);
}

function encodeIntOrString(value: unknown): Buffer {
  const text = typeof value === 'string' ? value : '';
  return Buffer.concat([
    integerField(1, typeof value === 'string' ? 1 : 0),
    integerField(2, typeof value === 'number' ? value : 0),
    bytesField(3, Buffer.from(text)),
  ]);
}

export function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([fieldStart(number, bytes.length), bytes]);
}

function fieldStart(number: number, length: number): Buffer {
  return Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(length))]);
}

export function integerField(number: number, value: number): Buffer {
  return Buffer.concat([varint(BigInt(number * 8)), varint(BigInt.asUintN(64, BigInt(value)))]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function mapping(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
