import { load as loadYaml } from 'js-yaml';
import { check } from '../../packages/check/src/command.js';
import { ConfigError } from '../../src/config/errors.js';
import { KubeconfigError } from '../../src/sources/kubernetes/auth/errors.js';
import { parseKubeconfig } from '../../src/sources/kubernetes/auth/kubeconfig.js';
import { readContent } from '../../src/sources/manifests/content.js';
import { Pacer } from '../../src/sources/manifests/pacer.js';
import { printProblem } from '../../src/sources/manifests/problems.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { KINDS } from '../../packages/check/test/golden/kinds.js';
import { KUBEADM, load } from '../config/load-from.js';
import { nodeObject, serviceCIDRObject, serviceObject, sliceObject } from '../support/api-objects.js';

/** Something that reads texts from outside. */
export interface Target {
  readonly name: string;
  /** Documents that it takes. */
  readonly documents: readonly unknown[];
  readonly maxLength: number;
  /** Whether JSON goes to a parser of its own; otherwise it is read as the YAML that it is. */
  readonly readsJson: boolean;
  /** Reads a text; answers all that a person is told of it. An error thrown is a find. */
  readonly read: (text: string) => Promise<string>;
}

const port = { name: 'web', port: 80, targetPort: 8080, nodePort: 30_080, protocol: 'TCP' };
const MANIFESTS = [
  serviceObject('web', {
    type: 'LoadBalancer',
    clusterIPs: ['10.96.0.10', 'fd00::1'],
    ipFamilies: ['IPv4', 'IPv6'],
    externalIPs: ['192.0.2.1'],
    loadBalancerSourceRanges: ['10.0.0.0/8', '2001:db8::/32'],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 3 } },
    ports: [port, { ...port, name: 'dns', nodePort: 30_081, protocol: 'UDP' }],
  }),
  sliceObject('web-a', 'web', ['10.0.0.1', '10.0.0.2']),
  nodeObject('n', {
    spec: { podCIDRs: ['10.0.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
  }),
  serviceCIDRObject('k', ['10.96.0.0/12']),
  { apiVersion: 'v1', kind: 'List', items: [serviceObject('a'), sliceObject('b', 'a', ['10.0.0.3'])] },
];

const exec = {
  apiVersion: 'client.authentication.k8s.io/v1',
  command: 'x',
  args: ['a'],
  env: [{ name: 'A', value: 'b' }],
};
const KUBECONFIG = {
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'c',
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': 'YQ==' } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [
    { name: 'u', user: { token: 't', 'as-user-extra': { scope: ['a'] }, exec: { ...exec, interactiveMode: 'Never' } } },
  ],
};

export const TARGETS: readonly Target[] = [
  {
    name: 'manifests',
    documents: MANIFESTS,
    maxLength: 600_000,
    readsJson: true,
    read: async (text: string): Promise<string> => {
      const { problems } = await readContent(text, 'f.yaml', new Interner(), new Pacer());
      return problems.map(printProblem).join('\n');
    },
  },
  {
    name: 'configuration',
    documents: [loadYaml(KUBEADM)],
    maxLength: 300_000,
    readsJson: false,
    read: (text: string): Promise<string> =>
      saidOf(ConfigError, () => {
        const loaded = load(['--config=f.yaml', '--manifests=objects.yaml'], { 'f.yaml': text });
        return 'warnings' in loaded ? loaded.warnings : [];
      }),
  },
  {
    name: 'kubeconfig',
    documents: [KUBECONFIG],
    maxLength: 300_000,
    readsJson: false,
    read: (text: string): Promise<string> => saidOf(KubeconfigError, () => parseKubeconfig(text, '/f.yaml').warnings),
  },
  {
    name: 'check',
    documents: KINDS.flatMap(({ apiVersion, kind, right }) =>
      right.map((body) => loadYaml(`apiVersion: ${apiVersion}\nkind: ${kind}\n${body}`)),
    ),
    maxLength: 300_000,
    readsJson: false,
    read: async (text: string): Promise<string> => {
      const { stdout, stderr } = await check(['f.yaml'], () => text);
      return stdout + stderr;
    },
  },
];

function saidOf(expected: new (...argv: never[]) => Error, read: () => readonly string[]): Promise<string> {
  try {
    return Promise.resolve(read().join('\n'));
  } catch (error) {
    if (error instanceof expected) return Promise.resolve(error.message);
    throw error;
  }
}
