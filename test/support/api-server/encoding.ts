import type { ApiObject } from '../api-objects.js';
import { encodeList, encodeObject, encodeWatchEvent, type ListParts } from './protobuf.js';
import { decodeObject } from './protobuf-reader.js';

/** How an answer is written. */
export interface Encoding {
  readonly contentType: string;
  readonly watchContentType: string;
  object(object: ApiObject): Buffer;
  list(list: ListParts): Buffer;
  event(type: string, object: ApiObject): Buffer;
}

const JSON_ENCODING: Encoding = {
  contentType: 'application/json',
  watchContentType: 'application/json',
  object: (object) => Buffer.from(`${JSON.stringify(object)}\n`),
  list: ({ apiVersion, kind, metadata, items }) => {
    const bare = items.map((item) => ({ ...item, kind: undefined, apiVersion: undefined }));
    return Buffer.from(`${JSON.stringify({ kind: `${kind}List`, apiVersion, metadata, items: bare })}\n`);
  },
  event: (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`),
};

const PROTOBUF_ENCODING: Encoding = {
  contentType: 'application/vnd.kubernetes.protobuf',
  watchContentType: 'application/vnd.kubernetes.protobuf;stream=watch',
  object: encodeObject,
  list: encodeList,
  event: encodeWatchEvent,
};

/** The first encoding in an Accept header that is spoken here; null when there is none. */
export function encodingFor(accept: string): Encoding | null {
  for (const range of accept.split(',')) {
    const type = range.split(';')[0]?.trim() ?? '';
    if (type === 'application/vnd.kubernetes.protobuf') return PROTOBUF_ENCODING;
    if (type === 'application/json' || type === '*/*' || type === 'application/*' || type === '') return JSON_ENCODING;
  }
  return null;
}

/** What a client posted. */
export function bodyObject(contentType: string, body: Buffer): ApiObject {
  if (contentType.startsWith('application/vnd.kubernetes.protobuf')) return decodeObject(body);
  return JSON.parse(body.toString()) as ApiObject;
}

export interface StatusFields {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: ApiObject;
  /** Where a list that is too old may be gone on with. */
  readonly continue?: string;
}

/** A meta/v1 Status of a failure. */
export function statusObject({ code, reason, message, details, continue: next }: StatusFields): ApiObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: next === undefined ? {} : { continue: next },
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
}

export const EXPIRED: StatusFields = { code: 410, reason: 'Expired', message: 'too old resource version' };

export function tooLargeVersion(asked: number, current: number): StatusFields {
  return {
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  };
}
