import { parseArgs } from 'node:util';
import { resultOrMessage } from '../base/error-message.js';
import { parseKernelRelease } from '../base/kernel-release.js';
import { durationMilliseconds, parseDuration } from '../config/duration.js';
import { KUBERNETES_VERSION } from '../config/version.js';
import type { Demands } from './agreement.js';
import { OUTPUTS, type OutputFormat } from './print.js';

export interface Options extends Demands {
  readonly files: readonly string[];
  /** Whether a running cluster is read as well. */
  readonly cluster: boolean;
  /** How it is reached; empty: as kubectl would. */
  readonly kubeconfig: string;
  readonly output: OutputFormat;
  readonly strict: boolean;
  /** Minor release of Kubernetes; null: it is not said. */
  readonly release: number | null;
  readonly help: boolean;
}

export const USAGE = `Usage: pointsman check [flags] FILE…
       pointsman check --cluster [--kubeconfig FILE] [flags] [FILE…]

Reads configuration files of a cluster, YAML or JSON, strictly, and says whether each is right and all agree.
The file - is the standard input.

  -o, --output text|json|sarif    how to print (default text)
      --strict                    warnings count as errors
      --cluster                   reads a running cluster as well: the configuration that it keeps in ConfigMaps, its Nodes,
                                  Services and ServiceCIDRs
      --kubeconfig FILE           how to reach it (default what KUBECONFIG names, ~/.kube/config, or a pod's service account)
      --kubernetes-version v1.N   release that the files are for (default the cluster's, else ${KUBERNETES_VERSION})
      --kernel VERSION            Linux of the nodes, such as 5.10: modes that need a later one are refused (default the oldest
                                  that Nodes have)
      --slo DURATION              how long a change of endpoints may take until all nodes have it, such as 5s:
                                  periods of batches and syncs that add up to more are refused
  -h, --help                      print this text

Exit status: 0, 1 when there are errors, 2 when something could not be read.
`;

/** What is wrong with the arguments, where something is. */
export function parseOptions(argv: readonly string[]): Options | string {
  const parsed = resultOrMessage(() => parseAll(argv));
  if (typeof parsed === 'string') return parsed;
  const { values, positionals: files } = parsed;
  const { cluster, kubeconfig = '', strict, help } = values;
  const release = values['kubernetes-version'] === undefined ? null : parseRelease(values['kubernetes-version']);
  if (typeof release === 'string') return release;
  const output = OUTPUTS.find((format) => format === values.output);
  if (output === undefined) return `--output: ${JSON.stringify(values.output)}: must be ${OUTPUTS.join(', ')}`;
  const demands = parseDemands(values.kernel, values.slo);
  if (typeof demands === 'string') return demands;
  if (kubeconfig !== '' && !cluster) return '--kubeconfig needs --cluster beside it';
  if (files.length === 0 && !cluster && !help) return 'check needs a file, or --cluster';
  return { files, cluster, kubeconfig, output, strict, release, help, ...demands };
}

function parseRelease(version: string): number | string {
  const [, minor] = /^v?1\.(\d{1,3})(?:\.\d{1,4})?$/.exec(version) ?? [];
  return minor === undefined
    ? `--kubernetes-version: ${JSON.stringify(version)}: must be a release such as v1.31`
    : Number(minor);
}

function parseDemands(kernelText: string | undefined, sloText: string | undefined): Demands | string {
  const kernel = kernelText === undefined ? null : parseKernelRelease(kernelText);
  if (kernelText !== undefined && kernel === null)
    return `--kernel: ${JSON.stringify(kernelText)}: must be a version such as 5.10`;
  const slo = sloText === undefined ? null : parseDuration(sloText);
  if (sloText !== undefined && slo === null) return `--slo: ${JSON.stringify(sloText)}: must be a duration such as 5s`;
  return { kernel, objective: slo === null ? null : durationMilliseconds(slo) };
}

function parseAll(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      output: { type: 'string', short: 'o', default: 'text' },
      strict: { type: 'boolean', default: false },
      cluster: { type: 'boolean', default: false },
      kubeconfig: { type: 'string' },
      'kubernetes-version': { type: 'string' },
      kernel: { type: 'string' },
      slo: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}
