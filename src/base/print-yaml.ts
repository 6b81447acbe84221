import { yamlLibrary } from './yaml-library.js';

/** A value of JSON as YAML. */
export function printYaml(value: unknown): string {
  return yamlLibrary().dump(value, { noRefs: true, lineWidth: -1 });
}
