import { messageOf } from '../../../base/error-message.js';
import { isMapping, type Mapping } from '../../../base/mapping.js';
import type { RowKind } from '../../../state/rows.js';
import { translate } from '../../translate/object.js';
import { CodecError } from './errors.js';
import type { ApiStatus, ReceivedObject } from './events.js';

/** @throws CodecError when the bytes are not JSON. */
export function parseJson(bytes: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end));
  } catch (error) {
    throw new CodecError(`not JSON: ${messageOf(error)}`);
  }
}

/** @throws CodecError when the object does not identify itself. */
export function jsonObject(kind: RowKind, value: unknown): ReceivedObject {
  const metadata = isMapping(value) ? value['metadata'] : null;
  if (!isMapping(metadata)) throw new CodecError('an object has no metadata');
  return {
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    version: textOf(metadata, 'resourceVersion'),
    translate: (names) => translate(kind, value, names),
  };
}

/** The text of a field; empty when it is absent. @throws CodecError when it is no text. */
export function textOf(mapping: Mapping, field: string): string {
  const value = mapping[field] ?? '';
  if (typeof value !== 'string') throw new CodecError(`${field} is no text`);
  return value;
}

/** Reads a meta/v1 Status. @throws CodecError when a field is of another type. */
export function statusOf(value: Mapping): ApiStatus {
  const details = isMapping(value['details']) ? value['details'] : {};
  const { retryAfterSeconds } = details;
  const causes: unknown = details['causes'] ?? [];
  return {
    code: typeof value['code'] === 'number' ? value['code'] : 0,
    reason: textOf(value, 'reason'),
    message: textOf(value, 'message'),
    retryAfterSeconds: typeof retryAfterSeconds === 'number' && retryAfterSeconds > 0 ? retryAfterSeconds : null,
    causes: Array.isArray(causes) ? causes.filter(isMapping).map((cause) => textOf(cause, 'reason')) : [],
  };
}
