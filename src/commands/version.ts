import { goPlatform } from '../base/platform.js';
import { printYaml } from '../base/print-yaml.js';
import { BUILD, KUBERNETES_VERSION, OWN_VERSION, ownVersion, treeState } from '../config/version.js';
import { failed, printed, type About } from './about.js';
import type { CommandSpec } from './command.js';
import { parseGiven, refusal } from './given.js';
import { printHelp } from './help.js';
import { OUTPUT } from './shared-flags.js';

export const VERSION: CommandSpec = {
  name: 'version',
  summary: 'print the version, and what the program was built from',
  operands: '',
  about: ['As text it prints what --version prints.'],
  examples: [{ line: 'pointsman version -o json', says: 'with commit, date, Node and platform, for programs' }],
  flags: [OUTPUT],
  proxyFlags: null,
  exits: { 0: 'it is printed', 1: null, 2: 'the command line is wrong' },
};

/** Runs {@link VERSION}. */
export function version(argv: readonly string[]): About {
  const given = parseGiven(VERSION, argv);
  if (typeof given === 'string') return failed(refusal(given, VERSION).trimEnd());
  if (given.help) return printed(printHelp(VERSION));
  if (given.operands.length > 0) return failed(refusal('version takes no words', VERSION).trimEnd());
  const facts = {
    version: OWN_VERSION,
    kubernetesVersion: KUBERNETES_VERSION,
    gitCommit: BUILD.commit.replace(/-dirty$/, ''),
    gitTreeState: treeState(),
    buildDate: BUILD.date,
    nodeVersion: process.version,
    platform: goPlatform(),
  };
  const output = given.text('output');
  if (output === 'json') return printed(`${JSON.stringify(facts, null, 1)}\n`);
  if (output === 'yaml') return printed(printYaml(facts));
  if (output === 'text') return printed(versionText('short'));
  return failed(refusal('--output: must be text, json or yaml', VERSION).trimEnd());
}

/** What `--version` prints. */
export function versionText(format: 'short' | 'raw'): string {
  if (format === 'short') return `Kubernetes ${KUBERNETES_VERSION} (${ownVersion()})\n`;
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.');
  // kube-proxy prints its structure as Go source (behaviour CL-03); the commit and the date of the build are ours, and what is of Go is empty or Node's.
  const fields = {
    Major: major,
    Minor: minor,
    EmulationMajor: '',
    EmulationMinor: '',
    MinCompatibilityMajor: '',
    MinCompatibilityMinor: '',
    GitVersion: KUBERNETES_VERSION,
    GitCommit: BUILD.commit.replace(/-dirty$/, ''),
    GitTreeState: treeState(),
    BuildDate: BUILD.date,
    GoVersion: process.version,
    Compiler: 'node',
    Platform: goPlatform(),
  };
  const parts = Object.entries(fields).map(([name, value]) => `${name}:${JSON.stringify(value)}`);
  return `version.Info{${parts.join(', ')}}\n`;
}
