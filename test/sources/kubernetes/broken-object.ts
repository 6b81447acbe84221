import type { ApiObject } from '../../support/api-objects.js';
import { bytesField, encodeObject } from '../../support/api-server/protobuf.js';

/** A watch event with a Service whose metadata can be read and whose spec cannot. */
export function brokenService(type: string, service: ApiObject): Buffer {
  const object = Buffer.from(encodeObject(service));
  // The length of the address, within the spec.
  object[object.indexOf('10.96.0.10') - 1] = 0x7f;
  const event = Buffer.concat([bytesField(1, Buffer.from(type)), bytesField(2, bytesField(1, object))]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}
