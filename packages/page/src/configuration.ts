import { KIND } from '../../../src/config/kind.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { Configuration, ConfigurationField } from './api.js';

/** The configuration in force, what of it differs from the defaults, and what does nothing. */
export function configuration(running: RunningProcess): Configuration {
  const { warnings, remarks, flags, paths } = running.loaded();
  const defaults = running.defaults();
  const initial = new Map(fieldsOf('', defaults.fields).map(({ field, value }) => [field, JSON.stringify(value)]));
  return {
    fields: fieldsOf('', running.configuration()).map(({ field, value }) => ({
      field,
      ...compared(JSON.stringify(value), initial.get(field) ?? ''),
      ineffective: remarks.find(({ path }) => path === `${KIND}.${field}`)?.problem ?? null,
    })),
    warnings,
    flags: flags.map(({ name, value }) => ({ name, ...compared(value, defaults.flags.get(name) ?? '') })),
    files: [paths.file, paths.directory].flatMap((path) => path ?? []),
    refused: running.refusal(),
  };
}

function compared(value: string, initial: string): Pick<ConfigurationField, 'value' | 'initial'> {
  return { value, initial: value === initial ? null : initial };
}

function fieldsOf(path: string, value: unknown): readonly { readonly field: string; readonly value: unknown }[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [{ field: path, value }];
  return Object.entries(value).flatMap(([name, inner]) => fieldsOf(path === '' ? name : `${path}.${name}`, inner));
}
