import {
  boolYaml11Tag,
  CORE_SCHEMA,
  defineMappingTag,
  defineScalarTag,
  intCoreTag,
  loadAll,
  NOT_RESOLVED,
  YAMLException,
} from 'js-yaml';

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

  /** Whether there is anything at a path of keys, be it null. */
  has(path: readonly string[]): boolean {
    const [head, ...rest] = path;
    if (head === undefined) return true;
    const held = this.entries.get(head);
    if (rest.length === 0) return this.entries.has(head);
    return held instanceof Mapping && held.has(rest);
  }
}

/** A file that is no YAML, or is too large to be a configuration. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
}

const MAX_BYTES = 1 << 20;
const MAX_DEPTH = 64;
const MAX_ALIASES = 100;

/**
 * Parses YAML or JSON of at most 1 MiB into its non-empty documents: mappings as {@link Mapping}, all else as the usual JavaScript values.
 * Scalars are read as Kubernetes components read them: YAML 1.1 booleans (`yes`, `on`), octal and binary numbers (`010` is 8, `0b11` is 3).
 *
 * @throws YamlError with the line of a syntax error.
 */
export function parseDocuments(text: string): unknown[] {
  if (Buffer.byteLength(text) > MAX_BYTES) throw new YamlError(`is larger than ${MAX_BYTES} bytes`);
  try {
    const documents = loadAll(text, { schema: SCHEMA, maxDepth: MAX_DEPTH, maxAliases: MAX_ALIASES });
    return documents.filter((document) => document !== null);
  } catch (error) {
    throw new YamlError(error instanceof YAMLException ? describe(error) : `is no YAML: ${String(error)}`);
  }
}

function describe(error: YAMLException): string {
  return error.mark === undefined ? error.reason : `line ${error.mark.line + 1}: ${error.reason}`;
}

const MERGE_KEY = '<<';

const mappingTag = defineMappingTag<[string, unknown][], Mapping>('tag:yaml.org,2002:map', {
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
    const own = merged.length > 0 ? pairs.filter(([key]) => key !== MERGE_KEY) : pairs;
    return new Mapping([...merged.reverse().flatMap((source) => [...source.entries]), ...own], duplicates);
  },
  identify: (value) => value instanceof Mapping,
});

/** What a merge key names; earlier sources win over later ones. */
function mergeSources(value: unknown): Mapping[] {
  const sources: readonly unknown[] = Array.isArray(value) ? value : [value];
  return sources.filter((source) => source instanceof Mapping);
}

const integerTag = defineScalarTag<number>('tag:yaml.org,2002:int', {
  implicit: true,
  implicitFirstChars: intCoreTag.implicitFirstChars,
  resolve: (source, isExplicit, tagName) => {
    const digits = source.replaceAll('_', '');
    if (/^[-+]?0[0-7]+$/.test(digits)) return parseInt(digits, 8);
    const binary = /^([-+]?)0b([01]+)$/.exec(digits);
    if (binary !== null) return parseInt(`${binary[1] ?? ''}${binary[2] ?? ''}`, 2);
    const value: unknown = intCoreTag.resolve(digits, isExplicit, tagName);
    return typeof value === 'number' ? value : NOT_RESOLVED;
  },
  identify: () => false,
});

const SCHEMA = CORE_SCHEMA.withTags(mappingTag, integerTag, boolYaml11Tag);
