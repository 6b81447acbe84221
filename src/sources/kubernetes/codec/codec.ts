import type { Codec } from './events.js';
import { JSON_CODEC } from './json.js';
import { PROTOBUF_CODEC } from './protobuf.js';

const JSON_TYPE = 'application/json';
const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

/** The codec for a response's Content-Type without parameters; null when we do not speak it. */
export function codecOf(contentType: string): Codec | null {
  if (contentType === PROTOBUF_TYPE) return PROTOBUF_CODEC;
  return contentType === JSON_TYPE ? JSON_CODEC : null;
}

/**
 * The Accept header from clientConnection: `acceptContentTypes` as it is when given, else `contentType` (protobuf when empty) and, as a last
 * resort, whatever the server has.
 */
export function acceptHeader(contentType: string, acceptContentTypes: string): string {
  if (acceptContentTypes !== '') return acceptContentTypes;
  return `${contentType === '' ? PROTOBUF_TYPE : contentType}, */*`;
}
