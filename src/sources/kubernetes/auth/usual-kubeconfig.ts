import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** The kubeconfig that kubectl would find; empty: this is a pod. @throws Error when there is none, or more than one. */
export function usualKubeconfig(env: Readonly<Record<string, string | undefined>>): string {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  if (named.length > 1) throw new Error(`KUBECONFIG names ${named.length} files: give one with --kubeconfig`);
  const own = join(env['HOME'] ?? homedir(), '.kube', 'config');
  const file = named[0] ?? (existsSync(own) ? own : '');
  if (file === '' && (env['KUBERNETES_SERVICE_HOST'] ?? '') === '')
    throw new Error(`there is no kubeconfig: give one with --kubeconfig or KUBECONFIG`);
  return file;
}
