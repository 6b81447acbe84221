import { goPlatform } from '../base/platform.js';
import { BUILD, KUBERNETES_VERSION, ownVersion, treeState } from '../config/version.js';

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
