import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ApiObject } from '../api-objects.js';
import type { ListParts } from './protobuf.js';

/** Answers recorded from a real API server; index.json beside them lists the requests. Tests are started in the project's folder. */
export function fixture(name: string): Buffer {
  return readFileSync(join(resolve('test/fixtures/apiserver-1.36'), name));
}

export interface JsonEvent {
  readonly type: string;
  readonly object: ApiObject;
}

/** The events of a watch in JSON. */
export function jsonLines(bytes: Buffer): readonly JsonEvent[] {
  return bytes
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JsonEvent);
}

export function jsonObject(bytes: Buffer): ApiObject {
  return JSON.parse(bytes.toString()) as ApiObject;
}

/** A list in JSON, in the parts the encoder wants. */
export function jsonList(bytes: Buffer): ListParts {
  const list = jsonObject(bytes) as unknown as ListParts;
  return { ...list, kind: list.kind.replace(/List$/, '') };
}
