import * as library from 'js-yaml';

export type YamlLibrary = typeof library;

/**
 * The library that reads and writes YAML. In the shipped program it is a file of its own, which is loaded here, and released when it has no holder:
 * a start that has read its files has no more need of it. So what is kept for long keeps nothing of it.
 */
export function yamlLibrary(): YamlLibrary {
  return library;
}
