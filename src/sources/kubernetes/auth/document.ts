import { readPlainJson } from '../../../base/plain-json.js';
import { readYaml, YamlError } from '../../../base/yaml.js';

/** Kept small enough for odd YAML to be read in a tenth of a second. JSON takes a fortieth of that. */
const MAX_YAML_CHARS = 1 << 18;
/** In JSON; also of a kubeconfig file. */
export const MAX_DOCUMENT_BYTES = 16 << 20;

/**
 * The one document of a YAML or JSON text; null when there is none.
 *
 * @throws Error saying what is wrong and in which line, but not what the line holds, as it may be a secret.
 */
export function parseDocument(text: string): unknown {
  if (text.length > MAX_YAML_CHARS) return parseLarge(text);
  const plain = readPlainJson(text);
  if (plain !== null) return plain;
  const documents = load(text).filter((document) => document !== null && document !== undefined);
  if (documents.length > 1) throw new Error(`holds ${documents.length} documents, must be one`);
  return documents[0] ?? null;
}

function parseLarge(text: string): unknown {
  if (text.length > MAX_DOCUMENT_BYTES) throw new Error(`is larger than ${MAX_DOCUMENT_BYTES} characters`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`is larger than ${MAX_YAML_CHARS} characters and no JSON: YAML must be smaller`);
  }
}

function load(text: string): readonly unknown[] {
  try {
    return readYaml(text);
  } catch (error) {
    throw error instanceof YamlError ? new Error(error.withoutText) : error;
  }
}
