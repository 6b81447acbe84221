import { isMapping } from '../base/mapping.js';
import { REDACTED } from '../base/url-text.js';
import type { Config } from './config.js';

/** One setting that is not what it was. */
export interface FieldChange {
  /** Dotted path within {@link Config}. */
  readonly field: string;
  /** Both as JSON. */
  readonly before: string;
  readonly after: string;
  /** Whether a running process can take it over. */
  readonly live: boolean;
}

/**
 * Which settings can change under a running process. A dataplane is built upon the mode and its flavour: another one makes another process. What
 * only flags say cannot change at all: a process has the flags that it was started with.
 */
const LIVE: Readonly<Record<keyof Config, boolean>> = {
  mode: false,
  nodeName: true,
  kubernetes: true,
  manifests: false,
  fileCheckFrequency: false,
  httpCheckFrequency: false,
  bindAddress: true,
  statusSocket: false,
  healthz: true,
  metrics: true,
  profiling: true,
  flagz: true,
  statusz: true,
  bindAddressHardFail: true,
  syncPeriod: true,
  minSyncPeriod: true,
  masqueradeAll: true,
  masqueradeBit: true,
  localhostNodePorts: true,
  iptablesFlavor: false,
  localDetection: true,
  nodePortAddresses: true,
  allowExternalIPs: true,
  conntrack: true,
  oomScoreAdj: true,
  logging: true,
};

/** Values that may be credentials, or could hold some. */
const HIDDEN = { before: JSON.stringify(REDACTED), after: JSON.stringify(REDACTED) } as const;
const SECRET: readonly string[] = ['manifests'];

/** Every setting that differs, by its path; empty when the two mean the same. */
export function compareConfigs(before: Config, after: Config): readonly FieldChange[] {
  return keysOf(LIVE).flatMap((field) =>
    differences(field, before[field], after[field]).map((difference) => ({
      ...difference,
      ...(SECRET.includes(field) ? HIDDEN : {}),
      live: LIVE[field],
    })),
  );
}

/** A change as the log shows it. */
export function printChange({ field, before, after }: FieldChange): string {
  return `${field}: ${before} → ${after}`;
}

/** Of two objects with the same fields the fields that differ, of anything else the whole. */
export function differences(field: string, before: unknown, after: unknown): Omit<FieldChange, 'live'>[] {
  const [a, b] = [JSON.stringify(before), JSON.stringify(after)];
  if (a === b) return [];
  if (isMapping(before) && isMapping(after) && Object.keys(before).join() === Object.keys(after).join()) {
    return Object.entries(before).flatMap(([key, value]) => differences(`${field}.${key}`, value, after[key]));
  }
  return [{ field, before: a, after: b }];
}

function keysOf(record: Readonly<Record<keyof Config, boolean>>): (keyof Config)[] {
  const keys: readonly string[] = Object.keys(record);
  return keys.filter((key): key is keyof Config => key in record);
}
