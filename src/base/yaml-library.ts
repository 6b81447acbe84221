import * as library from 'js-yaml';

export type YamlLibrary = typeof library;

/**
 * The library that reads and writes YAML. In the shipped program it is a file of its own, which is loaded here. It is released when it has no holder, because
 * a start that has read its files does not need it any more. So what is kept for long keeps nothing of it.
 */
export function yamlLibrary(): YamlLibrary {
  return library;
}
