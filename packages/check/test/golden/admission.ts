import type { Golden } from './golden.js';

export const ADMISSION: readonly Golden[] = [
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    right: [
      'plugins: [{name: A, configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Server, qps: 5, burst: 10}]}}]',
    ],
    wrong: [
      [
        'plugins: [{name: A}, {name: A}, {path: x}, {name: E, path: e.yaml, configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: []}}]',
        'error: AdmissionConfiguration.plugins[1].name: is given twice',
        'error: AdmissionConfiguration.plugins[2].name: is missing: should be text',
        'error: AdmissionConfiguration.plugins[3].configuration.limits: is empty: should be a list of at least 1',
        'warning: AdmissionConfiguration.plugins[3].path: "e.yaml": has no effect beside configuration',
        'x:3: document 1: error: AdmissionConfiguration.plugins[1].name: is given twice',
        'x:3: document 1: error: AdmissionConfiguration.plugins[2].name: is missing: should be text',
        'x:3: document 1: error: AdmissionConfiguration.plugins[3].configuration.limits: is empty: should be a list of at least 1',
        'x:3: document 1: warning: AdmissionConfiguration.plugins[3].path: "e.yaml": has no effect beside configuration',
      ],
    ],
  },
  {
    apiVersion: 'admission.pointsman.io/v1alpha1',
    kind: 'ServicePolicy',
    right: [
      '',
      'rules: {frontends: Warn, conflicts: Warn, unusable: Ignore}\nallowedExternalIPs: [{namespaces: [a, "b-*", "*"], cidrs: [10.0.0.0/8, "::/0"]}]',
    ],
    wrong: [
      [
        'rules: {conflict: Warn, ports: warn}\nallowedExternalIPs: [{namespaces: [A, "a*b"], cidrs: [x]}, {}]',
        'error: ServicePolicy.rules.ports: "warn": has the wrong case: should be "Warn"',
        'error: ServicePolicy.rules.conflict: is an unknown field',
        'error: ServicePolicy.allowedExternalIPs[0].cidrs[0]: "x": cannot be read: should be a CIDR such as 10.0.0.0/16 or 2001:db8::/64',
        'error: ServicePolicy.allowedExternalIPs[0].namespaces[0]: is no namespace: should be a name, maybe with * at its end',
        'error: ServicePolicy.allowedExternalIPs[0].namespaces[1]: is no namespace: should be a name, maybe with * at its end',
        'error: ServicePolicy.allowedExternalIPs[1].namespaces: is missing: should be a list of at least 1',
        'error: ServicePolicy.allowedExternalIPs[1].cidrs: is missing: should be a list of at least 1',
      ],
    ],
  },
  {
    apiVersion: 'eventratelimit.admission.k8s.io/v1alpha1',
    kind: 'Configuration',
    right: [
      'limits: [{type: Server, qps: 5, burst: 10}, {type: Namespace, qps: 1, burst: 1, cacheSize: 10}, {type: SourceAndObject, qps: 1, burst: 1}]',
    ],
    wrong: [
      ['', 'error: Configuration.limits: is missing: should be a list of at least 1'],
      [
        'limits: [{type: server, qps: 0, burst: -1}, {type: User}, {type: User, qps: 1, burst: 1, cacheSize: -1}, {type: Server, qps: 1, burst: 1, cacheSize: 5}]',
        'error: Configuration.limits[0].type: "server": has the wrong case: should be "Server"',
        'error: Configuration.limits[0].qps: 0: is out of range: should be an integer of at least 1',
        'error: Configuration.limits[0].burst: -1: is out of range: should be an integer of at least 1',
        'error: Configuration.limits[1].qps: is missing: should be an integer of at least 1',
        'error: Configuration.limits[1].burst: is missing: should be an integer of at least 1',
        'error: Configuration.limits[2].cacheSize: -1: is out of range: should be an integer of at least 0',
        'error: Configuration.limits[2].type: "User": is given twice',
        'warning: Configuration.limits[3].cacheSize: 5: has no effect for type Server',
      ],
    ],
  },
];
