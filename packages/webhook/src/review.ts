import { messageOf } from '../../../src/base/error-message.js';
import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import { cutMessage } from '../../../src/base/outside-text.js';
import { printableLine } from '../../../src/base/printable.js';
import { TranslateError } from '../../../src/sources/translate/errors.js';
import { Fields } from '../../../src/sources/translate/fields.js';

/** AdmissionReview of admission.k8s.io/v1: what an API server asks, and what it is answered. */

const API_VERSION = 'admission.k8s.io/v1';
const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;

export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: (typeof OPERATIONS)[number];
  /** Whether it is about a Service, or its status. */
  readonly isService: boolean;
  /** Empty for the object itself. */
  readonly subResource: string;
  readonly namespace: string;
  readonly name: string;
  /** The user who asked the API server. */
  readonly user: string;
  /** Nothing of it will be kept. */
  readonly dryRun: boolean;
  /** Null where the operation has none. */
  readonly object: Mapping | null;
  readonly oldObject: Mapping | null;
}

export interface Verdict {
  /** Why not; null: it may. */
  readonly refusal: string | null;
  /** Each of at most 120 characters. */
  readonly warnings: readonly string[];
}

/** A text that is no AdmissionReview with a request. Its message names every field that is wrong. */
export class BadReview extends Error {
  override readonly name = 'BadReview';
}

/** Lists and mappings within each other: no Service has a third of them. */
export const MAX_DEPTH = 64;
/** Values and members: two Services of 10,000 ports each with their `managedFields` have three quarters of them. */
export const MAX_VALUES = 400_000;

/**
 * Parsing and comparing take time by values, and stack by depth, not by length: 4 MiB of brackets take seconds. An API server sends no such review. Counting
 * takes a hundredth of that.
 */
function refuseCostly(text: string): void {
  let [depth, values] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++;
    } else if (character === '[' || character === '{') {
      depth++;
      values++;
    } else if (character === ']' || character === '}') depth--;
    else if (character === ',') values++;
    if (depth > MAX_DEPTH)
      throw new BadReview(`a review has at most ${MAX_DEPTH} lists and mappings within each other`);
    if (values > MAX_VALUES) throw new BadReview(`a review has at most ${MAX_VALUES} values`);
  }
}

/** @throws BadReview */
export function readReview(text: string): AdmissionRequest {
  refuseCostly(text);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new BadReview(printableLine(cutMessage(`no JSON: ${messageOf(error)}`)));
  }
  try {
    return readRequest(Fields.of(parsed));
  } catch (error) {
    if (error instanceof TranslateError) throw new BadReview(printableLine(cutMessage(error.message)));
    throw error;
  }
}

function readRequest(review: Fields): AdmissionRequest {
  const version = review.requiredString('apiVersion');
  if (version !== '' && version !== API_VERSION) review.refuse('apiVersion', version, `must be ${API_VERSION}`);
  const kind = review.requiredString('kind');
  if (kind !== '' && kind !== 'AdmissionReview') review.refuse('kind', kind, 'must be AdmissionReview');
  if (review.lacks('request')) review.refuse('request', null, 'is required');
  const request = review.section('request');
  const resource = request.section('resource');
  const read = {
    uid: request.requiredString('uid'),
    operation: request.choice('operation', OPERATIONS, 'CONNECT'),
    isService:
      (resource.string('group') ?? '') === '' &&
      resource.requiredString('version') === 'v1' &&
      resource.requiredString('resource') === 'services',
    subResource: request.string('subResource') ?? '',
    namespace: request.string('namespace') ?? '',
    name: request.string('name') ?? '',
    user: request.section('userInfo').string('username') ?? '',
    dryRun: request.boolean('dryRun') ?? false,
    object: objectOf(request, 'object'),
    oldObject: objectOf(request, 'oldObject'),
  };
  request.requiredString('operation');
  const { operation, object, oldObject } = read;
  if (object === null && (operation === 'CREATE' || operation === 'UPDATE'))
    request.refuse('object', null, `is required for ${operation}`);
  if (oldObject === null && operation === 'UPDATE') request.refuse('oldObject', null, `is required for ${operation}`);
  review.check();
  return read;
}

function objectOf(request: Fields, name: string): Mapping | null {
  const value = request.raw(name);
  if (value === null || isMapping(value)) return value;
  request.refuse(name, value, 'must be a mapping');
  return null;
}

/** The text of the answer. */
export function printAnswer(uid: string, { refusal, warnings }: Verdict): string {
  const status = refusal === null ? {} : { status: { code: 403, reason: 'Forbidden', message: refusal } };
  return JSON.stringify({
    apiVersion: API_VERSION,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: refusal === null,
      ...status,
      ...(warnings.length === 0 ? {} : { warnings }),
    },
  });
}
