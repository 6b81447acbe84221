import type { Golden } from './golden.js';

export const AUDIT: readonly Golden[] = [
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    right: [
      'omitStages: [RequestReceived]\nrules: [{level: None, users: [a], verbs: [get]}, {level: Metadata, users: [a, b], verbs: [get]}, {level: None, resources: [{group: "", resources: [pods]}]}, {level: Metadata, resources: [{group: apps, resources: [pods]}]}, {level: None, resources: [{group: a, resources: [x], resourceNames: [z]}]}, {level: Metadata, resources: [{group: a, resources: [x]}]}, {level: None, nonResourceURLs: ["/a"]}, {level: Metadata, nonResourceURLs: ["/a*"]}, {level: None, userGroups: [g]}, {level: Metadata, omitStages: [RequestReceived, Panic]}]',
      `metadata: {name: x}
omitStages: [RequestReceived]
omitManagedFields: true
rules: [{level: None, users: [a], verbs: [watch], resources: [{group: "", resources: [pods/log, pods/status], resourceNames: [x]}], namespaces: [""]}, {level: None, resources: [{group: "*"}, {group: apps}]}, {level: Metadata, nonResourceURLs: ["/healthz*", "*"]}, {level: RequestResponse, omitStages: [Panic], omitManagedFields: false}]`,
    ],
    wrong: [
      [
        'rules: [{level: None, users: [a, b], verbs: [get]}, {level: Metadata, users: [a], verbs: [get], namespaces: [x]}, {level: Request, resources: [{group: apps, resources: [pods, deployments]}]}, {level: None, resources: [{group: apps, resources: [pods], resourceNames: [x]}]}, {level: None, nonResourceURLs: ["/a*"]}, {level: Metadata, nonResourceURLs: ["/ab*", "/a"], verbs: [get]}]',
        'warning: Policy.rules[1]: is never reached: rules[0] matches all that it matches',
        'warning: Policy.rules[3]: is never reached: rules[2] matches all that it matches',
        'warning: Policy.rules[5]: is never reached: rules[4] matches all that it matches',
      ],
      [
        'omitStages: [RequestReceived, ResponseStarted, ResponseComplete, Panic]\nrules: [{level: Metadata}]',
        'warning: Policy.omitStages: has all stages: nothing is recorded',
      ],
      [
        'omitStages: [RequestReceived, Panic]\nrules: [{level: Metadata, omitStages: [ResponseStarted, ResponseComplete]}]',
        'warning: Policy.rules[0].omitStages: leaves no stage: nothing is recorded',
      ],
      ['rules: []', 'error: Policy.rules: is empty: should be a list of at least 1'],
      ['metadata: x\nrules: [{level: None}]', 'error: Policy.metadata: "x": has the wrong type: should be a mapping'],
      [
        'metadata: {name: 1, labels: {a: true}, annotations: [], ownerReferences: []}\nrules: [{level: None}]',
        'error: Policy.metadata.name: 1: has the wrong type: should be text',
        'error: Policy.metadata.labels.a: true: has the wrong type: should be text',
        'error: Policy.metadata.annotations: has the wrong type, a list: should be a mapping',
      ],
      [
        'rules: [{level: None, resources: [{group: apps/v1}]}]',
        'error: Policy.rules[0].resources[0].group: "apps/v1": cannot be read: should be a group without version, or *',
      ],
      [
        `omitStages: [Requested]
rules: [{level: request}, {level: Metadata, nonResourceURLs: ["/a*b", healthz], resources: [{group: ""}], namespaces: [a]}, {resources: [{resourceNames: [x]}, {resources: [pods/*, pods/log]}, {resources: ["*", a]}, {resources: ["*/log", pods/log]}]}]`,
        'error: Policy.rules[0].level: "request": has the wrong case: should be "Request"',
        'error: Policy.rules[1].resources: must not be given beside nonResourceURLs',
        'error: Policy.rules[1].namespaces: must not be given beside nonResourceURLs',
        'error: Policy.rules[1].nonResourceURLs[0]: cannot be read: should be a path, with * at its end only, or *',
        'error: Policy.rules[1].nonResourceURLs[1]: cannot be read: should be a path, with * at its end only, or *',
        'error: Policy.rules[2].level: is missing: should be "None" or "Metadata" or "Request" or "RequestResponse"',
        'error: Policy.rules[2].resources[0].resourceNames: needs resources beside it',
        'error: Policy.rules[2].resources[1].resources: has "pods/*", which overlaps others',
        'error: Policy.rules[2].resources[2].resources: has "*", which overlaps others',
        'error: Policy.rules[2].resources[3].resources: has "*/log", which overlaps others',
        'error: Policy.omitStages[0]: "Requested": is not known: should be "RequestReceived" or "ResponseStarted" or "ResponseComplete" or "Panic"',
        'warning: Policy.rules[1]: is never reached: rules[0] matches all that it matches',
        'warning: Policy.rules[2]: is never reached: rules[0] matches all that it matches',
      ],
    ],
  },
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'PolicyList',
    right: ['items: [{rules: [{level: None}]}]'],
    wrong: [
      [
        'items: [{rules: [{level: x}]}]',
        'error: PolicyList.items[0].rules[0].level: "x": is not known: should be "None" or "Metadata" or "Request" or "RequestResponse"',
      ],
    ],
  },
];
