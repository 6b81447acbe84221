import type { Golden } from './golden.js';

const REQUEST =
  'uid: a, kind: {group: "", version: v1, kind: Service}, resource: {group: "", version: v1, resource: services}, userInfo: {username: x, groups: [g], extra: {k: [v]}}';
const EVENT = 'auditID: a, stage: Panic, requestURI: /a, verb: get, user: {username: x}';
const EVENT_LINES = EVENT.replace(/, (?=\w+:)/g, '\n');

export const REVIEWS: readonly Golden[] = [
  {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    right: [
      `request: {${REQUEST}, operation: CREATE, object: {a: 1}, oldObject: null, dryRun: false, options: {kind: CreateOptions}, requestKind: {version: v1, kind: Service}}`,
      `request: {${REQUEST}, operation: UPDATE, subResource: status, name: a, namespace: b, object: {}, oldObject: {}}`,
      'response: {uid: a, allowed: true, patch: W10=, patchType: JSONPatch, warnings: [short], auditAnnotations: {a: b}}',
      'response: {uid: a, allowed: true, patch: W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EvLSIsInZhbHVlIjpudWxsfSx7Im9wIjoicmVtb3ZlIiwicGF0aCI6IiJ9LHsib3AiOiJtb3ZlIiwiZnJvbSI6Ii9hIiwicGF0aCI6Ii9ifjFjIn0seyJvcCI6InRlc3QiLCJwYXRoIjoiL3giLCJ2YWx1ZSI6MX0seyJvcCI6ImNvcHkiLCJmcm9tIjoiIiwicGF0aCI6Ii95In0seyJvcCI6InJlcGxhY2UiLCJwYXRoIjoiL3oiLCJ2YWx1ZSI6e319XQ==, patchType: JSONPatch}',
      'response: {uid: a, allowed: false, status: {code: 403, message: denied, reason: Forbidden}}',
    ],
    wrong: [
      ['request: null', 'error: AdmissionReview: needs request or response'],
      [
        `request: {uid: a, kind: {version: v1}, operation: create, objects: {}}
response: {uid: b, patchType: MergePatch}`,
        'error: AdmissionReview.request.kind.kind: is missing: should be text',
        'error: AdmissionReview.request.resource: is missing: should be a mapping',
        'error: AdmissionReview.request.userInfo: is missing: should be a mapping',
        'error: AdmissionReview.request.operation: "create": has the wrong case: should be "CREATE"',
        'error: AdmissionReview.request.objects: is an unknown field',
        'error: AdmissionReview.response.allowed: is missing: should be true or false',
        'error: AdmissionReview.response.patch: is missing beside the other of both',
        'error: AdmissionReview.response.patchType: "MergePatch": is not known: should be "JSONPatch"',
        'error: AdmissionReview.response.uid: "b": is not the uid of the request',
      ],
      [
        `request: {${REQUEST}, operation: CREATE, oldObject: {a: 1}}`,
        'error: AdmissionReview.request.oldObject: must not be given with CREATE',
      ],
      [
        `request: {${REQUEST}, operation: DELETE, object: {a: 1}}`,
        'error: AdmissionReview.request.object: must not be given with DELETE',
      ],
      [
        `response: {uid: a, allowed: true, patch: e30=, patchType: JSONPatch, status: {code: 403}, warnings: ["${'x'.repeat(121)}", "${'y'.repeat(257)}"]}`,
        'error: AdmissionReview.response.patch: "e30=": is no list: should be operations of RFC 6902 in JSON, in base64',
        'warning: AdmissionReview.response.status: has no effect as allowed is true',
        'warning: AdmissionReview.response.warnings[0]: has 121 characters: should be at most 120',
        'warning: AdmissionReview.response.warnings[1]: has 257 characters, and may be cut off: should be at most 120',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiQWRkIiwicGF0aCI6Ii9hIiwidmFsdWUiOjF9XQ==, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiQWRkIiwicGF0aCI6Ii9hIiwidmFsdWUiOjF9XQ==": has operation [1], which has no known op: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiYWRkIiwicGF0aCI6ImEiLCJ2YWx1ZSI6MX1d, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiYWRkIiwicGF0aCI6ImEiLCJ2YWx1ZSI6MX1d": has operation [1], which has no path: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoicmVwbGFjZSIsInBhdGgiOiIvYX4yIn1d, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoicmVwbGFjZSIsInBhdGgiOiIvYX4yIn1d": has operation [1], which has no path: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoidGVzdCIsInBhdGgiOiIvYSJ9XQ==, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoidGVzdCIsInBhdGgiOiIvYSJ9XQ==": has operation [1], which has no value: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoibW92ZSIsInBhdGgiOiIvYSJ9XQ==, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoibW92ZSIsInBhdGgiOiIvYSJ9XQ==": has operation [1], which has no from: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiY29weSIsImZyb20iOiJhIiwicGF0aCI6Ii9hIn1d, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7Im9wIjoiY29weSIsImZyb20iOiJhIiwicGF0aCI6Ii9hIn1d": has operation [1], which has no from: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSwxXQ==, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSwxXQ==": has operation [1], which is no mapping: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7InBhdGgiOiIvYSIsInZhbHVlIjoxfV0=, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2sifSx7InBhdGgiOiIvYSIsInZhbHVlIjoxfV0=": has operation [1], which has no known op: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: true, patch: W3s=, patchType: JSONPatch}',
        'error: AdmissionReview.response.patch: "W3s=": cannot be read: should be operations of RFC 6902 in JSON, in base64',
      ],
      [
        'response: {uid: a, allowed: false, patch: W10=}',
        'error: AdmissionReview.response.patchType: is missing beside the other of both',
      ],
    ],
  },
  {
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    kind: 'ImageReview',
    right: [
      'spec: {containers: [{image: "a:1"}], annotations: {a.image-policy.k8s.io/b: c}, namespace: d}',
      'spec: {}\nstatus: {allowed: false, reason: old, auditAnnotations: {a: b}}',
    ],
    wrong: [
      [
        'status: {}',
        'error: ImageReview.spec: is missing: should be a mapping',
        'error: ImageReview.status.allowed: is missing: should be true or false',
      ],
      [
        'spec: {containers: [{}]}\nstatus: {allowed: true, reason: x}',
        'error: ImageReview.spec.containers[0].image: is missing: should be text',
        'warning: ImageReview.status.reason: "x": has no effect as allowed is true',
      ],
      [
        'spec: {}\nstatus: {allowed: false}',
        'warning: ImageReview.status.reason: is missing: refused users do not learn why',
      ],
    ],
  },
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Event',
    right: [
      `${EVENT_LINES}
level: RequestResponse
sourceIPs: [192.0.2.1]
objectRef: {resource: services, namespace: a, name: b, apiVersion: v1}
responseStatus: {code: 200, metadata: {}}
requestObject: {a: 1}
responseObject: {a: 1}
requestReceivedTimestamp: "2026-01-02T03:04:05.000000Z"
stageTimestamp: "2026-01-02T03:04:05.000001Z"
annotations: {authorization.k8s.io/decision: allow}`,
      `${EVENT_LINES.replace('get', 'post')}\nlevel: Metadata`,
    ],
    wrong: [
      [
        `${EVENT_LINES}
level: Request
stageTimestamp: "2026-01-02T03:04:04.000000Z"
requestReceivedTimestamp: "2026-01-02T03:04:05.000000Z"
requestObject: {}
responseObject: {}`,
        'error: Event.requestObject: is only recorded of resources, and there is no objectRef',
        'error: Event.responseObject: is only recorded of resources, and there is no objectRef',
        'error: Event.responseObject: is not recorded at level Request',
        'error: Event.stageTimestamp: "2026-01-02T03:04:04.000000Z": is before requestReceivedTimestamp',
      ],
      [`${EVENT_LINES.replace('get', 'GET')}\nlevel: Metadata`, 'error: Event.verb: "GET": has capital letters'],
      [
        `${EVENT_LINES.replace('get', 'post')}\nlevel: Metadata\nobjectRef: {resource: pods}`,
        'error: Event.verb: "post": is an HTTP method, and objectRef names a resource: should be a verb such as "create"',
      ],
      [
        'level: None\nstage: Done\nstageTimestamp: now',
        'error: Event.auditID: is missing: should be text',
        'error: Event.requestURI: is missing: should be text',
        'error: Event.verb: is missing: should be text',
        'error: Event.user: is missing: should be a mapping',
        'error: Event.level: "None": records nothing',
        'error: Event.stage: "Done": is not known: should be "RequestReceived" or "ResponseStarted" or "ResponseComplete" or "Panic"',
        'error: Event.stageTimestamp: "now": cannot be read: should be a time as in RFC 3339',
      ],
    ],
  },
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'EventList',
    right: [`metadata: {}\nitems: [{${EVENT}, level: Metadata}]`],
    wrong: [
      ['metadata: {}', 'error: EventList.items: is missing: should be a list'],
      [
        `items: [{${EVENT}, level: Metadata, requestObject: {}}]`,
        'error: EventList.items[0].requestObject: is not recorded at level Metadata',
        'error: EventList.items[0].requestObject: is only recorded of resources, and there is no objectRef',
      ],
    ],
  },
];
