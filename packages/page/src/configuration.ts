import { KIND } from '../../../src/config/document.js';
import { configurationFields } from '../../../src/config/write.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { Configuration, ConfigurationField } from './api.js';

/** The configuration in force, and what of it does nothing. */
export function configuration(running: RunningProcess): Configuration {
  const { document, warnings, flags, paths } = running.loaded();
  return {
    fields: fieldsOf('', configurationFields(document)).map(({ field, value }) => ({
      field,
      value: JSON.stringify(value),
      ineffective: ineffective(field, warnings),
    })),
    warnings,
    flags: flags.map(({ name, value }) => ({ name, value })),
    files: [paths.file, paths.directory].flatMap((path) => path ?? []),
    refused: running.refusal(),
  };
}

function fieldsOf(path: string, value: unknown): readonly { readonly field: string; readonly value: unknown }[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [{ field: path, value }];
  return Object.entries(value).flatMap(([name, inner]) => fieldsOf(path === '' ? name : `${path}.${name}`, inner));
}

/** Warnings name their field first. */
function ineffective(field: string, warnings: readonly string[]): ConfigurationField['ineffective'] {
  const start = `${KIND}.${field}: `;
  return warnings.find((warning) => warning.startsWith(start))?.slice(start.length) ?? null;
}
