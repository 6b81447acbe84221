import { parseKernelRelease } from '../../../src/base/kernel-release.js';
import { CHECK } from '../../../src/commands/check.js';
import { parseGiven } from '../../../src/commands/given.js';
import { readServiceLimits } from '../../../src/commands/service-limits.js';
import { durationMilliseconds, parseDuration } from '../../../src/config/duration.js';
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
  /** Minor release of Kubernetes; null: it is not given. */
  readonly release: number | null;
  /** Platform of the nodes; null: as the files say. */
  readonly platform: NodeJS.Platform | null;
  readonly help: boolean;
}

/** What is wrong with the arguments, where something is. */
export function parseOptions(argv: readonly string[]): Options | string {
  const given = parseGiven(CHECK, argv);
  if (typeof given === 'string') return given;
  const { help, operands: files } = given;
  const [cluster, strict, kubeconfig] = [given.isSet('cluster'), given.isSet('strict'), given.text('kubeconfig')];
  const version = given.optional('kubernetes-version');
  const release = version === null ? null : parseRelease(version);
  if (typeof release === 'string') return release;
  const form = given.text('output');
  const output = OUTPUTS.find((format) => format === form);
  if (output === undefined) return `--output: ${JSON.stringify(form)}: must be ${OUTPUTS.join(', ')}`;
  const system = given.text('platform');
  if (system !== '' && !(system in PLATFORMS)) return `--platform: ${JSON.stringify(system)}: must be linux or windows`;
  const platform = PLATFORMS[system] ?? null;
  const demands = parseDemands(given.optional('kernel'), given.optional('slo'));
  if (typeof demands === 'string') return demands;
  if (kubeconfig !== '' && !cluster) return '--kubeconfig needs --cluster beside it';
  if (files.length === 0 && !cluster && !help) return 'check needs a file, or --cluster';
  const { limits, problems } = readServiceLimits(given);
  if (problems.length > 0) return problems.join('\n');
  return { files, cluster, kubeconfig, output, strict, release, platform, help, limits, ...demands };
}

const PLATFORMS: Readonly<Record<string, NodeJS.Platform>> = { linux: 'linux', windows: 'win32' };

function parseRelease(version: string): number | string {
  const [, minor] = /^v?1\.(\d{1,3})(?:\.\d{1,4})?$/.exec(version) ?? [];
  return minor === undefined
    ? `--kubernetes-version: ${JSON.stringify(version)}: must be a release such as v1.31`
    : Number(minor);
}

function parseDemands(kernelText: string | null, sloText: string | null): Omit<Demands, 'limits'> | string {
  const kernel = kernelText === null ? null : parseKernelRelease(kernelText);
  if (kernelText !== null && kernel === null)
    return `--kernel: ${JSON.stringify(kernelText)}: must be a version such as 5.10`;
  const slo = sloText === null ? null : parseDuration(sloText);
  if (sloText !== null && slo === null) return `--slo: ${JSON.stringify(sloText)}: must be a duration such as 5s`;
  return { kernel, objective: slo === null ? null : durationMilliseconds(slo) };
}
