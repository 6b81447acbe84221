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
  else if (section.has('patch') && !isListOfJson(section.text('patch')))
    section.refuse('patch', 'patch', 'cannot be read', 'a list of operations in JSON, in base64');
});

function isListOfJson(base64: string): boolean {
  try {
    return Array.isArray(JSON.parse(Buffer.from(base64, 'base64').toString('utf8')));
  } catch {
    return false;
  }
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
