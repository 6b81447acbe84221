import { KUBERNETES_VERSION } from '../config/version.js';
import type { CommandSpec } from './command.js';

export const CHECK: CommandSpec = {
  name: 'check',
  summary: 'say what is wrong with configuration files of the cluster',
  operands: 'FILE…',
  about: [
    'Reads configuration files of a cluster, YAML or JSON, strictly, and says whether each is right and all agree. The file - is the standard input.',
  ],
  examples: [
    { line: 'pointsman check config.conf kubelet.yaml', says: 'two files, and whether they agree' },
    { line: 'pointsman check --cluster', says: 'what a running cluster keeps' },
    { line: 'pointsman check -o sarif *.yaml', says: 'for a code review' },
  ],
  flags: [
    {
      name: 'output',
      short: 'o',
      type: 'string',
      value: 'text|json|yaml|sarif',
      help: 'how to print',
      initial: 'text',
    },
    { name: 'strict', type: 'bool', help: 'warnings count as errors', initial: 'false' },
    {
      name: 'cluster',
      type: 'bool',
      help: 'read a running cluster as well: the configuration that it keeps in ConfigMaps, its Nodes, Services and ServiceCIDRs',
      initial: 'false',
    },
    {
      name: 'kubeconfig',
      type: 'string',
      value: 'file',
      help: "with --cluster: how to reach it; empty: what KUBECONFIG names, ~/.kube/config, or a pod's service account",
      initial: '',
    },
    {
      name: 'kubernetes-version',
      type: 'string',
      value: 'v1.N',
      help: `release that the files are for; empty: the cluster's, else ${KUBERNETES_VERSION}`,
      initial: '',
    },
    {
      name: 'kernel',
      type: 'string',
      value: 'version',
      help: 'Linux of the nodes, such as 5.10: modes that need a later one are refused; empty: the oldest that Nodes have',
      initial: '',
    },
    {
      name: 'slo',
      type: 'string',
      value: 'duration',
      help: 'how long a change of endpoints may take until all nodes have it, such as 5s: periods of batches and syncs that add up to more are refused',
      initial: '',
    },
  ],
  proxyFlags: null,
  exits: { 0: 'there are no errors', 1: 'there are', 2: 'something could not be read' },
};
