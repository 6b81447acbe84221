import { isMapping } from '../../../../src/base/mapping.js';
import { rule, someOf } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  any,
  bool,
  int,
  list,
  map,
  oneOf,
  partial,
  required,
  struct,
  text,
  type KindTable,
} from '../../../../src/config/tables/types.js';
import { LEVEL, STAGE } from '../../../../src/config/kinds/audit.js';

/** Recorded requests of the API server to others: reviews of requests and of images; and its own records. */

const USER = struct({ username: text, uid: text, groups: list(text), extra: map(list(text)) });
const KIND = struct({ group: text, version: required(text), kind: required(text) });
const RESOURCE = struct({ group: text, version: required(text), resource: required(text) });

/** What an API call came to. */
const STATUS = struct({
  apiVersion: text,
  kind: text,
  metadata: partial({}),
  status: oneOf('Success', 'Failure'),
  message: text,
  reason: text,
  details: any,
  code: int(0, 999),
});

const OBJECTS = rule('operation', (section) => {
  const operation = section.text('operation');
  if (section.isGiven('oldObject') && !['UPDATE', 'DELETE', ''].includes(operation))
    section.refuse('operation', 'oldObject', `must not be given with ${operation}`);
  if (section.isGiven('object') && operation === 'DELETE')
    section.refuse('operation', 'object', 'must not be given with DELETE');
});

const PATCH = rule('patch', (section) => {
  if (section.has('patch') !== section.has('patchType'))
    section.refuse('patch', section.has('patch') ? 'patchType' : 'patch', 'is missing beside the other of both');
  else if (section.text('patch') !== '') {
    const problem = patchProblem(section.text('patch'));
    if (problem !== null) section.refuse('patch', 'patch', problem, 'operations of RFC 6902 in JSON, in base64');
  }
});

/** Error of a JSON patch (RFC 6902); null: it is valid. */
function patchProblem(base64: string): string | null {
  let operations: unknown;
  try {
    operations = JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
  } catch {
    return 'cannot be read';
  }
  if (!Array.isArray(operations)) return 'is no list';
  for (const [index, operation] of operations.entries()) {
    const problem = operationProblem(operation);
    if (problem !== null) return `has operation [${index}], which ${problem}`;
  }
  return null;
}

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;
const OF_VALUES = ['add', 'replace', 'test'];
const OF_OTHERS = ['move', 'copy'];

function operationProblem(operation: unknown): string | null {
  if (!isMapping(operation)) return 'is no mapping';
  const { op, path, from } = operation;
  if (typeof op !== 'string' || ![...OF_VALUES, ...OF_OTHERS, 'remove'].includes(op)) return 'has no known op';
  if (typeof path !== 'string' || !POINTER.test(path)) return 'has no path';
  if (OF_VALUES.includes(op) && !('value' in operation)) return 'has no value';
  return OF_OTHERS.includes(op) && (typeof from !== 'string' || !POINTER.test(from)) ? 'has no from' : null;
}

const DENIAL = rule('no-effect', (section) => {
  if (section.truth('allowed') && section.has('status'))
    section.warn('no-effect', 'status', 'has no effect as allowed is true');
});

const WARNING_CHARACTERS = { kept: 120, truncated: 256 } as const;

const WARNINGS = rule('length', (section) => {
  for (const [index, { length }] of section.texts('warnings').entries()) {
    const problem = `has ${length} characters${length > WARNING_CHARACTERS.truncated ? ', and may be cut off' : ''}`;
    if (length > WARNING_CHARACTERS.kept)
      section.warn('length', `warnings[${index}]`, problem, `at most ${WARNING_CHARACTERS.kept}`);
  }
});

const SAME_UID = rule('uid', (section) => {
  const [request, response] = [section.section('request'), section.section('response')];
  if (request?.has('uid') === true && response?.has('uid') === true && request.text('uid') !== response.text('uid'))
    response.refuse('uid', 'uid', 'is not the uid of the request');
});

const ADMISSION_REVIEW = struct(
  {
    request: struct(
      {
        uid: required(text),
        kind: required(KIND),
        resource: required(RESOURCE),
        subResource: text,
        requestKind: KIND,
        requestResource: RESOURCE,
        requestSubResource: text,
        name: text,
        namespace: text,
        operation: required(oneOf('CREATE', 'UPDATE', 'DELETE', 'CONNECT')),
        userInfo: required(USER),
        object: any,
        oldObject: any,
        dryRun: bool,
        options: any,
      },
      OBJECTS,
    ),
    response: struct(
      {
        uid: required(text),
        allowed: required(bool),
        status: STATUS,
        patch: scalar('base64'),
        patchType: oneOf('JSONPatch'),
        auditAnnotations: map(text),
        warnings: list(text),
      },
      PATCH,
      DENIAL,
      WARNINGS,
    ),
  },
  someOf('request', 'response'),
  SAME_UID,
);

const REASON = rule('reason', (section) => {
  const isAllowed = section.truth('allowed');
  if (isAllowed && section.has('reason')) section.warn('reason', 'reason', 'has no effect as allowed is true');
  if (!isAllowed && section.isGiven('allowed') && !section.has('reason'))
    section.warn('reason', 'reason', 'is missing: refused users do not learn why');
});

const IMAGE_REVIEW = struct({
  metadata: partial({}),
  spec: required(
    struct({ containers: list(struct({ image: required(text) })), annotations: map(text), namespace: text }),
  ),
  status: struct({ allowed: required(bool), reason: text, auditAnnotations: map(text) }, REASON),
});

/** What is recorded of a request's body, from which level on. */
const BODIES: readonly (readonly [name: string, levels: readonly string[]])[] = [
  ['requestObject', ['Request', 'RequestResponse']],
  ['responseObject', ['RequestResponse']],
];

const LEVELS = rule('level', (section: Section) => {
  const level = section.text('level');
  if (level === 'None') section.refuse('level', 'level', 'records nothing');
  for (const [name, levels] of BODIES)
    if (section.isGiven(name) && level !== '' && !levels.includes(level))
      section.refuse('level', name, `is not recorded at level ${level}`);
});

const TIMES = rule('order', (section) => {
  const [received, reached] = ['requestReceivedTimestamp', 'stageTimestamp'].map((name) =>
    Date.parse(section.text(name)),
  );
  if (received !== undefined && reached !== undefined && reached < received)
    section.refuse('order', 'stageTimestamp', 'is before requestReceivedTimestamp');
});

/** Requests of no resource have HTTP methods for verbs, in small letters; those of resources have verbs of their own. */
const HTTP_METHODS = ['post', 'put', 'head', 'options', 'trace'];

const VERB = rule('verb', (section) => {
  const verb = section.text('verb');
  if (verb !== verb.toLowerCase()) section.refuse('verb', 'verb', 'has capital letters');
  else if (section.isGiven('objectRef') && HTTP_METHODS.includes(verb))
    section.refuse('verb', 'verb', 'is an HTTP method, and objectRef names a resource', 'a verb such as "create"');
});

const OF_RESOURCES = rule('requires', (section) => {
  for (const [name] of BODIES)
    if (section.isGiven(name) && !section.isGiven('objectRef'))
      section.refuse('requires', name, 'is only recorded of resources, and there is no objectRef');
});

const EVENT = struct(
  {
    level: required(LEVEL),
    auditID: required(text),
    stage: required(STAGE),
    requestURI: required(text),
    verb: required(text),
    user: required(USER),
    impersonatedUser: USER,
    sourceIPs: list(text),
    userAgent: text,
    objectRef: struct({
      resource: text,
      namespace: text,
      name: text,
      uid: text,
      apiGroup: text,
      apiVersion: text,
      resourceVersion: text,
      subresource: text,
    }),
    responseStatus: STATUS,
    requestObject: any,
    responseObject: any,
    requestReceivedTimestamp: scalar('timestamp'),
    stageTimestamp: scalar('timestamp'),
    annotations: map(text),
  },
  LEVELS,
  TIMES,
  VERB,
  OF_RESOURCES,
);

const EVENT_LIST = struct({
  metadata: partial({}),
  items: required(list(struct({ ...EVENT.fields, apiVersion: text, kind: text }, ...EVENT.rules))),
});

export const REVIEWS: readonly KindTable[] = [
  { kind: 'ImageReview', group: 'imagepolicy.k8s.io', versions: { v1alpha1: {} }, table: IMAGE_REVIEW },
  { kind: 'AdmissionReview', group: 'admission.k8s.io', versions: { v1: {} }, table: ADMISSION_REVIEW },
  { kind: 'Event', group: 'audit.k8s.io', versions: { v1: {} }, table: EVENT },
  { kind: 'EventList', group: 'audit.k8s.io', versions: { v1: {} }, table: EVENT_LIST },
];
