import { bool, text } from '../config/flag.js';
import { CHECKED_MINOR } from '../config/version.js';
import type { CommandSpec } from './command.js';
import { SERVICE_LIMIT_FLAGS } from './service-limits.js';

export const CHECK: CommandSpec = {
  name: 'check',
  summary: 'find errors in configuration files of the cluster',
  operands: 'FILE|DIR…',
  about: [
    'Reads configuration files of a cluster, YAML or JSON, strictly. Checks each file, and whether they agree. The file - is the standard input. Of a folder, its files *.yaml, *.yml, *.json and *.conf are read.',
  ],
  examples: [
    { line: 'pointsman check config.conf kubelet.yaml', says: 'two files, and whether they agree' },
    { line: 'pointsman check /etc/kubernetes', says: 'the files of a folder' },
    { line: 'pointsman check --cluster', says: 'the configuration of a running cluster' },
    { line: 'pointsman check -o sarif *.yaml', says: 'for a code review' },
  ],
  flags: [
    text('output', 'text|json|yaml|sarif', 'output format', 'text', { short: 'o' }),
    bool('strict', 'warnings count as errors'),
    bool(
      'cluster',
      'read a running cluster as well: the configuration that it keeps in ConfigMaps, its Nodes, Services and ServiceCIDRs',
    ),
    text(
      'kubeconfig',
      'file',
      "with --cluster: its kubeconfig; empty: KUBECONFIG, ~/.kube/config, or a pod's service account",
    ),
    text(
      'kubernetes-version',
      'v1.N',
      `Kubernetes release of the files; empty: the cluster's, kubeadm's, or 1.${CHECKED_MINOR}`,
    ),
    text(
      'platform',
      'linux|windows',
      "system of the proxies' nodes; empty: that of the mode, and without a mode one that the file is right for",
    ),
    text(
      'kernel',
      'version',
      'Linux version of the nodes, such as 5.10: modes that need a later one are errors; empty: the oldest of the Nodes',
    ),
    text(
      'slo',
      'duration',
      'longest time for an endpoint change to reach all nodes, such as 5s: batch and sync periods that add up to more are errors',
    ),
    ...SERVICE_LIMIT_FLAGS,
  ],
  proxyFlags: null,
  exits: { 0: 'no errors', 1: 'errors', 2: 'something could not be read' },
};
