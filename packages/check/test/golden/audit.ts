import type { Golden } from './golden.js';

export const AUDIT: readonly Golden[] = [
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    right: [
      `metadata: {name: x}
omitStages: [RequestReceived]
omitManagedFields: true
rules: [{level: None, users: [a], verbs: [watch], resources: [{group: "", resources: [pods/log, pods/status], resourceNames: [x]}], namespaces: [""]}, {level: None, resources: [{group: "*"}, {group: apps}]}, {level: Metadata, nonResourceURLs: ["/healthz*", "*"]}, {level: RequestResponse, omitStages: [Panic], omitManagedFields: false}]`,
    ],
    wrong: [
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
        'warning: Policy.rules[1]: is never reached, like all after it: the rule before it matches everything',
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
