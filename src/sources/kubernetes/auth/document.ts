import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';

/** As kubectl reads its files: merge keys, and `yes` and `on` are booleans. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag);
const MAX_BYTES = 16 << 20;

/**
 * The one document of a YAML or JSON text; null when there is none.
 *
 * @throws Error saying what is wrong and in which line, but not what the line holds, as it may be a secret.
 */
export function parseDocument(text: string): unknown {
  if (text.length > MAX_BYTES) throw new Error(`is larger than ${MAX_BYTES} bytes`);
  const documents = load(text).filter((document) => document !== null && document !== undefined);
  if (documents.length > 1) throw new Error(`holds ${documents.length} documents, must be one`);
  return documents[0] ?? null;
}

function load(text: string): readonly unknown[] {
  try {
    return loadAll(text, { schema: SCHEMA });
  } catch (error) {
    if (!(error instanceof YAMLException) || error.mark === undefined) throw new Error('is no YAML');
    // What follows these is the document's own text.
    const [reason = ''] = error.reason.split(/"|<|: /, 1);
    throw new Error(`is no YAML: line ${error.mark.line + 1}: ${reason.trim()}`);
  }
}
