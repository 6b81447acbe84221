import type { ApiStatus } from './events.js';
import { CodecError } from './errors.js';
import { BYTES, tagOf, VARINT, type Cursor, type Range } from './wire.js';

/** Every protobuf answer begins with the bytes of `k8s` and a zero; a runtime.Unknown follows. */
const MAGIC = 0x6b387300;
export const MAGIC_BYTES = 4;

/** Field numbers of runtime.Unknown and of its TypeMeta. */
export const UNKNOWN = { TYPE_META: tagOf(1, BYTES), RAW: tagOf(2, BYTES) };
const TYPE_META = { KIND: tagOf(2, BYTES) };

/** Whether the envelope's first bytes are at `start`. */
export function hasMagic(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= MAGIC_BYTES && bytes.readUInt32BE(start) === MAGIC;
}

/** The kind that the nested TypeMeta names. */
export function readKind(cursor: Cursor): string {
  let kind = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === TYPE_META.KIND) kind = cursor.sharedText();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return kind;
}

/** What an envelope holds, and where in the bytes it was read from. */
interface Envelope {
  readonly kind: string;
  readonly raw: Range;
}

/** Opens the envelope that is in a part of the bytes. @throws CodecError when it is none. */
export function openEnvelope(bytes: Buffer, { start, end }: Range, cursor: Cursor): Envelope {
  if (!hasMagic(bytes, start, end)) throw new CodecError('a protobuf object lacks the prefix of the Kubernetes API');
  cursor.reset(bytes, start + MAGIC_BYTES, end);
  let kind = '';
  let raw: Range | null = null;
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === UNKNOWN.TYPE_META) kind = readKind(cursor);
    else if (tag === UNKNOWN.RAW) raw = cursor.range();
    else cursor.skip(tag);
  }
  if (raw === null) throw new CodecError(`the envelope of a ${kind === '' ? 'protobuf object' : kind} is empty`);
  return { kind, raw };
}

/** Field numbers of meta/v1 Status, StatusDetails and StatusCause. */
const STATUS = {
  MESSAGE: tagOf(3, BYTES),
  REASON: tagOf(4, BYTES),
  DETAILS: tagOf(5, BYTES),
  CODE: tagOf(6, VARINT),
};
const DETAILS = { CAUSES: tagOf(4, BYTES), RETRY_AFTER: tagOf(5, VARINT) };
const CAUSE = { REASON: tagOf(1, BYTES) };

/** Reads the Status message that fills the cursor. */
export function readStatus(cursor: Cursor): ApiStatus {
  const status = { code: 0, reason: '', message: '', retryAfterSeconds: 0, causes: new Array<string>() };
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === STATUS.MESSAGE) status.message = cursor.text();
    else if (tag === STATUS.REASON) status.reason = cursor.text();
    else if (tag === STATUS.CODE) status.code = cursor.integer();
    else if (tag === STATUS.DETAILS) status.retryAfterSeconds = readDetails(cursor, status.causes);
    else cursor.skip(tag);
  }
  return { ...status, retryAfterSeconds: status.retryAfterSeconds > 0 ? status.retryAfterSeconds : null };
}

/** Adds the causes' reasons to `causes` and returns the seconds to wait, 0 when not given. */
function readDetails(cursor: Cursor, causes: string[]): number {
  let retryAfter = 0;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === DETAILS.RETRY_AFTER) retryAfter = cursor.integer();
    else if (tag === DETAILS.CAUSES) causes.push(readCause(cursor));
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return retryAfter;
}

function readCause(cursor: Cursor): string {
  let reason = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === CAUSE.REASON) reason = cursor.text();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return reason;
}
