import type { MappingTagDefinition } from 'js-yaml';
import { readPlainJson } from '../base/plain-json.js';
import { yamlLibrary } from '../base/yaml-library.js';
import { mergeLimit, readYaml, scalarsSchema, YamlError } from '../base/yaml.js';

/** One YAML mapping: the last value of every key, and the keys that came more than once. */
export class Mapping {
  readonly entries: ReadonlyMap<string, unknown>;
  readonly duplicates: readonly string[];

  constructor(entries: Iterable<readonly [string, unknown]>, duplicates: readonly string[] = []) {
    this.entries = new Map(entries);
    this.duplicates = duplicates;
  }

  /** A copy with another's entries laid over: where both hold a mapping the two merge, anything else replaces. Duplicates stay behind. */
  merge(over: Mapping): Mapping {
    const entries = new Map(this.entries);
    for (const [key, value] of over.entries) {
      const held = entries.get(key);
      entries.set(key, held instanceof Mapping && value instanceof Mapping ? held.merge(value) : value);
    }
    return new Mapping(entries);
  }

  /** What is at a path of keys; undefined: nothing. */
  at([head = '', ...rest]: readonly string[]): unknown {
    const held = this.entries.get(head);
    if (rest.length === 0) return held;
    return held instanceof Mapping ? held.at(rest) : undefined;
  }

  /** Whether there is anything at a path of keys, be it null. */
  has(path: readonly string[]): boolean {
    const [head, ...rest] = path;
    if (head === undefined) return true;
    const held = this.entries.get(head);
    if (rest.length === 0) return this.entries.has(head);
    return held instanceof Mapping && held.has(rest);
  }
}

/** Kept small enough for odd YAML to be read in a tenth of a second. */
export const MAX_CONFIG_BYTES = 1 << 16;

/**
 * Parses YAML or JSON of at most 64 KiB into its non-empty documents: mappings as {@link Mapping}, all else as the usual JavaScript values.
 *
 * @throws YamlError with the line of a syntax error.
 */
export function parseDocuments(text: string): unknown[] {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) throw new YamlError(`is larger than ${MAX_CONFIG_BYTES} bytes`);
  const plain = readPlainJson(text);
  if (plain !== null) return [asMappings(plain)];
  return readMappings(text).filter((document) => document !== null);
}

/** A value of mappings that were parsed as objects. */
export function asMappings(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asMappings);
  return typeof value === 'object' && value !== null ? asMapping(value) : value;
}

export function asMapping(object: object): Mapping {
  return new Mapping(Object.entries(object).map(([key, part]) => [key, asMappings(part)]));
}

/** As {@link parseDocuments}, of any length and with the empty documents, as null. */
export function readMappings(text: string): unknown[] {
  return readYaml(text, undefined, scalarsSchema().withTags(mappingTag(mergeLimit(text))));
}

const MERGE_KEY = '<<';

/** @param mergeable entries that the merge keys of a text may copy. */
function mappingTag(mergeable: number): MappingTagDefinition<[string, unknown][], Mapping> {
  let left = mergeable;
  const { defineMappingTag } = yamlLibrary();
  return defineMappingTag<[string, unknown][], Mapping>('tag:yaml.org,2002:map', {
    create: () => [],
    addPair: (pairs, key, value) => {
      if (typeof key === 'object' && key !== null) return 'the key of a mapping must be text';
      pairs.push([String(key), value]);
      return '';
    },
    // The library would refuse a key it has seen; here duplicates are collected and reported with their field path.
    has: () => false,
    keys: (mapping) => mapping.entries.keys(),
    get: (mapping, key) => mapping.entries.get(String(key)),
    finalize: (pairs) => {
      const seen = new Set<string>();
      const duplicates = pairs.map(([key]) => key).filter((key) => seen.size === seen.add(key).size);
      const merged = pairs.filter(([key]) => key === MERGE_KEY).flatMap(([, value]) => mergeSources(value));
      for (const source of merged) left -= 1 + source.entries.size;
      if (left < 0) throw new Error('merge keys copy more than is written');
      const own = merged.length > 0 ? pairs.filter(([key]) => key !== MERGE_KEY) : pairs;
      return new Mapping([...merged.reverse().flatMap((source) => [...source.entries]), ...own], duplicates);
    },
    identify: (value) => value instanceof Mapping,
  });
}

/** What a merge key names; earlier sources win over later ones. */
function mergeSources(value: unknown): Mapping[] {
  const sources: readonly unknown[] = Array.isArray(value) ? value : [value];
  return sources.filter((source) => source instanceof Mapping);
}
