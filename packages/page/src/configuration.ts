import { KIND } from '../../../src/config/kind.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { Configuration } from './api.js';

/** The configuration in force, and what of it does nothing. */
export function configuration(running: RunningProcess): Configuration {
  const { warnings, remarks, flags, paths } = running.loaded();
  return {
    fields: fieldsOf('', running.configuration()).map(({ field, value }) => ({
      field,
      value: JSON.stringify(value),
      ineffective: remarks.find(({ path }) => path === `${KIND}.${field}`)?.problem ?? null,
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
