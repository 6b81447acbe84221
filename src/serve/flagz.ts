import type { FlagSetting } from '../config/flags.js';
import type { StructuredPage } from './structured-page.js';

/** The flags in force. */
export function flagzPage(flags: readonly FlagSetting[]): StructuredPage {
  const sorted = [...flags].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    kind: 'Flagz',
    lines: () => sorted.map(({ name, value }) => `${name}=${value}`),
    fields: () => ({ flags: Object.fromEntries(sorted.map(({ name, value }) => [name, value])) }),
  };
}
