import { projectFile } from './agent.js';

/** What goes wrong between the process and the kernel: see faulty-addon.cjs. */
export interface KernelFaults {
  readonly kill?: { readonly call: number; readonly when: 'before' | 'during' | 'after' };
  readonly refuse?: Readonly<Record<string, string>>;
  readonly spoil?: { readonly set: string; readonly key: string };
  readonly while?: string;
  readonly rate?: number;
  readonly seed?: number;
  readonly calls?: string;
}

/** The environment of a process with such faults. */
export function faulty(faults: KernelFaults): Readonly<Record<string, string>> {
  return {
    POINTSMAN_ADDON: projectFile('test/support/lab/faulty-addon.cjs'),
    POINTSMAN_FAULTS: JSON.stringify(faults),
  };
}
