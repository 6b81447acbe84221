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
}

/** Values that may be credentials, or could hold some. */
const HIDDEN = { before: JSON.stringify(REDACTED), after: JSON.stringify(REDACTED) } as const;
const SECRET: readonly string[] = ['manifests'];

/**
 * Every setting that differs, by its path; empty when the two mean the same. A running process can take over each of them; what only flags say does not
 * change while it runs.
 */
export function compareConfigs(before: Config, after: Config): readonly FieldChange[] {
  return Object.keys(before)
    .filter((field): field is keyof Config => field in after)
    .flatMap((field) =>
      differences(field, before[field], after[field]).map((difference) => ({
        ...difference,
        ...(SECRET.includes(field) ? HIDDEN : {}),
      })),
    );
}

/** Whether another mode, or the same with other settings, takes the place of the one in force. */
export function changesMode(changes: readonly FieldChange[]): boolean {
  return changes.some(
    ({ field }) => field === 'mode' || field === 'iptablesFlavor' || /^(ipvs|kernelspace)\b/.test(field),
  );
}

/** A change as the log shows it. */
export function printChange({ field, before, after }: FieldChange): string {
  return `${field}: ${before} → ${after}`;
}

/** Of two objects with the same fields the fields that differ, of anything else the whole. */
export function differences(field: string, before: unknown, after: unknown): FieldChange[] {
  const [a, b] = [JSON.stringify(before), JSON.stringify(after)];
  if (a === b) return [];
  if (isMapping(before) && isMapping(after) && Object.keys(before).join() === Object.keys(after).join()) {
    return Object.entries(before).flatMap(([key, value]) => differences(`${field}.${key}`, value, after[key]));
  }
  return [{ field, before: a, after: b }];
}

/** Whether another source has to take the API server's place: another server or another way there, or another Node to ask for. */
export function concernsApi({ field }: FieldChange): boolean {
  return field === 'nodeName' || field === 'kubernetes' || field.startsWith('kubernetes.');
}
