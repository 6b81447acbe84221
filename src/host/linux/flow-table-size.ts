import { readFileSync } from 'node:fs';
import type { FlowTableSize } from '../host.js';

const FOLDER = '/proc/sys/net/netfilter';

/** See {@link Host.flowTableSize}; the sysctls are those of the process's network namespace (nf_conntrack-sysctl.rst of the kernel). */
export function flowTableSize(read: (path: string) => string = readText): FlowTableSize | null {
  try {
    const [entries, limit] = ['count', 'max'].map((name) => Number(read(`${FOLDER}/nf_conntrack_${name}`)));
    if (entries === undefined || limit === undefined || !Number.isFinite(entries) || !(limit > 0)) return null;
    return { entries, limit };
  } catch {
    // The module is not loaded.
    return null;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'latin1');
}
