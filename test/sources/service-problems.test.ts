import t from 'tap';
import { TranslateError } from '../../src/sources/translate/errors.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { translateService } from '../../src/sources/translate/service.js';
import { serviceObject, type ApiObject } from '../support/api-objects.js';

function problemsOf(object: unknown): readonly string[] {
  try {
    translateService(object, new Interner());
  } catch (error) {
    if (error instanceof TranslateError) return error.problems.map(String);
    throw error;
  }
  return [];
}

t.test('every problem of a Service is found, with path and value', (t) => {
  const table: [string, ApiObject, readonly string[], ApiObject?][] = [
    [
      'port out of range',
      {
        ports: [
          { port: 80, name: 'a' },
          { port: 70_000, name: 'b' },
        ],
      },
      ['spec.ports[1].port: 70000: must be between 1 and 65535'],
    ],
    [
      'port as text',
      { ports: [{ port: '80' }] },
      ['spec.ports[0].port: "80": must be a whole number between 1 and 65535'],
    ],
    ['fraction', { ports: [{ port: 80.5 }] }, ['spec.ports[0].port: 80.5: must be a whole number between 1 and 65535']],
    ['no port', { ports: [{}] }, ['spec.ports[0].port: null: is required']],
    ['port 0', { ports: [{ port: 0 }] }, ['spec.ports[0].port: 0: must be between 1 and 65535']],
    ['no ports', { ports: [] }, ['spec.ports: null: is required']],
    ['ports no list', { ports: { port: 80 } }, ['spec.ports: a mapping: must be a list']],
    ['port no mapping', { ports: [80] }, ['spec.ports[0]: 80: must be a mapping']],
    [
      'protocol',
      { ports: [{ port: 80, protocol: 'tcp' }] },
      ['spec.ports[0].protocol: "tcp": must be one of TCP, UDP, SCTP'],
    ],
    [
      'node port',
      { type: 'NodePort', ports: [{ port: 80, nodePort: -1 }] },
      ['spec.ports[0].nodePort: -1: must be between 0 and 65535'],
    ],
    [
      'node port of ClusterIP',
      { ports: [{ port: 80, nodePort: 30_000 }] },
      ['spec.ports[0].nodePort: 30000: may not be used when type is ClusterIP'],
    ],
    [
      'names missing',
      { ports: [{ port: 80 }, { port: 81, name: 'b' }] },
      ['spec.ports[0].name: null: is required when there are several ports'],
    ],
    [
      'names twice',
      {
        ports: [
          { port: 80, name: 'a' },
          { port: 81, name: 'a' },
        ],
      },
      ['spec.ports[1].name: "a": must not be used by two ports of one Service'],
    ],
    [
      'protocol and port twice',
      {
        ports: [
          { port: 80, name: 'a' },
          { port: 80, name: 'b', protocol: 'TCP' },
          { port: 80, name: 'c', protocol: 'UDP' },
        ],
      },
      ['spec.ports[1].port: 80: must not be used by two ports of one Service'],
    ],
    [
      'node port twice',
      {
        type: 'NodePort',
        ports: [
          { port: 80, name: 'a', nodePort: 30_000 },
          { port: 81, name: 'b', nodePort: 30_000 },
        ],
      },
      ['spec.ports[1].nodePort: 30000: must not be used by two ports of one Service'],
    ],
    [
      'port name',
      { ports: [{ port: 80, name: 'A b' }] },
      ['spec.ports[0].name: "A b": must be a DNS label: at most 63 of a-z, 0-9 and -'],
    ],
    ['type', { type: 'Magic' }, ['spec.type: "Magic": must be one of ClusterIP, NodePort, LoadBalancer, ExternalName']],
    ['cluster IP', { clusterIP: '10.96.0' }, ['spec.clusterIP: "10.96.0": must be an IP address or "None"']],
    ['cluster IP type', { clusterIP: 7 }, ['spec.clusterIP: 7: must be a string']],
    [
      'cluster IPs differ',
      { clusterIPs: ['10.0.0.9'] },
      ['spec.clusterIP: "10.96.0.10": must be the first of clusterIPs, "10.0.0.9"'],
    ],
    [
      'a third',
      { clusterIPs: ['10.96.0.10', 'fd00::1', 'fd00::2'] },
      ['spec.clusterIPs[2]: "fd00::2": must be of another family than 10.96.0.10,fd00::1'],
    ],
    [
      "a third of the first one's family",
      { clusterIPs: ['10.96.0.10', 'fd00::1', '10.96.0.11'] },
      ['spec.clusterIPs[2]: "10.96.0.11": must be of another family than 10.96.0.10,fd00::1'],
    ],
    [
      'two of one family',
      { clusterIPs: ['10.96.0.10', '10.96.0.11'] },
      ['spec.clusterIPs[1]: "10.96.0.11": must be of another family than 10.96.0.10'],
    ],
    ['family disagrees', { ipFamilies: ['IPv6'] }, ['spec.clusterIP: "10.96.0.10": must be IPv6, as in ipFamilies']],
    ['family unknown', { ipFamilies: ['IPv5'] }, ['spec.ipFamilies[0]: "IPv5": must be one of IPv4, IPv6']],
    [
      'policy',
      { externalTrafficPolicy: 'local' },
      ['spec.externalTrafficPolicy: "local": must be one of Cluster, Local'],
    ],
    ['policy type', { internalTrafficPolicy: true }, ['spec.internalTrafficPolicy: true: must be a string']],
    ['affinity', { sessionAffinity: 'Cookie' }, ['spec.sessionAffinity: "Cookie": must be one of None, ClientIP']],
    [
      'affinity timeout',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } },
      ['spec.sessionAffinityConfig.clientIP.timeoutSeconds: 86401: must be between 1 and 86400'],
    ],
    [
      'affinity timeout 0',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      ['spec.sessionAffinityConfig.clientIP.timeoutSeconds: 0: must be between 1 and 86400'],
    ],
    [
      'health check port',
      { healthCheckNodePort: 65_536 },
      ['spec.healthCheckNodePort: 65536: must be between 0 and 65535'],
    ],
    ['external IP type', { externalIPs: [5] }, ['spec.externalIPs[0]: 5: must be a string']],
    [
      'ranges type',
      { loadBalancerSourceRanges: '10.0.0.0/8' },
      ['spec.loadBalancerSourceRanges: "10.0.0.0/8": must be a list'],
    ],
    [
      'ip mode',
      {},
      ['status.loadBalancer.ingress[0].ipMode: "vip": must be one of VIP, Proxy'],
      { status: { loadBalancer: { ingress: [{ ip: '1.1.1.1', ipMode: 'vip' }] } } },
    ],
    [
      'name',
      {},
      ['metadata.name: "Web": must be a DNS label: at most 63 of a-z, 0-9 and -'],
      { metadata: { name: 'Web' } },
    ],
    ['name missing', {}, ['metadata.name: null: is required'], { metadata: {} }],
    [
      'namespace',
      {},
      ['metadata.namespace: "a/b": must be a DNS label: at most 63 of a-z, 0-9 and -'],
      { metadata: { name: 'a', namespace: 'a/b' } },
    ],
    [
      'time',
      {},
      ['metadata.creationTimestamp: "yesterday": must be a time such as "2025-01-31T12:00:00Z"'],
      { metadata: { name: 'a', creationTimestamp: 'yesterday' } },
    ],
    ['labels', {}, ['metadata.labels: a list: must be a mapping'], { metadata: { name: 'a', labels: ['x'] } }],
    ['spec', {}, ['spec: "x": must be a mapping'], { spec: 'x' }],
    [
      'several at once',
      { type: 'X', clusterIP: 'y', ports: [{ port: -1, protocol: 'Z' }] },
      [
        'spec.type: "X": must be one of ClusterIP, NodePort, LoadBalancer, ExternalName',
        'spec.clusterIP: "y": must be an IP address or "None"',
        'spec.ports[0].protocol: "Z": must be one of TCP, UDP, SCTP',
        'spec.ports[0].port: -1: must be between 1 and 65535',
      ],
    ],
  ];
  for (const [name, spec, expected, rest] of table) {
    const found = problemsOf(serviceObject('web', spec, rest));
    t.strictSame(name === 'spec' ? found.slice(0, 1) : found, expected, name);
  }
  for (const value of [null, undefined, 'text', 5, [], true]) t.equal(problemsOf(value).length, 1, String(value));
  t.end();
});

t.test('long values are cut in messages, and containers are only named', (t) => {
  const [problem = ''] = problemsOf(serviceObject('web', { type: 'x'.repeat(100_000) }));
  t.ok(problem.length < 300);
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  t.strictSame(problemsOf(serviceObject('web', { type: cyclic })), ['spec.type: a list: must be a string']);
  t.end();
});
