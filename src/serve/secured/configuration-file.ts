import { invalid, joinProblems } from '../../config/errors.js';
import { FieldReader, type Findings } from '../../config/reader.js';
import { parseDocuments } from '../../config/yaml.js';

/** That of the API server's own configuration, as its documents and its sources name it. */
const GROUPS = ['apiserver.config.k8s.io', 'apiserver.k8s.io'] as const;

/**
 * Reads a file of one document, strictly.
 *
 * @param read notes what is wrong beyond the types of fields.
 * @throws Error with every problem, each with the path of its field.
 */
export function readConfigurationFile<T>(
  text: string,
  kind: string,
  versions: readonly string[],
  read: (root: FieldReader, problems: string[]) => T,
): T {
  const documents = parseDocuments(text);
  if (documents.length !== 1) throw new Error(`must hold one document, not ${documents.length}`);
  const findings: Findings = { strict: [], fatal: [] };
  const root = new FieldReader(documents[0], kind, findings);
  const apiVersion = root.text('apiVersion');
  const known = GROUPS.flatMap((group) => versions.map((version) => `${group}/${version}`));
  if (!known.includes(apiVersion))
    findings.fatal.push(invalid(`${kind}.apiVersion`, apiVersion, `must be one of ${known.join(', ')}`));
  const found = root.text('kind');
  if (found !== kind) findings.fatal.push(invalid(`${kind}.kind`, found, `must be ${kind}`));
  const made = read(root, findings.fatal);
  root.finish();
  const problems = [...findings.fatal, ...findings.strict];
  if (problems.length > 0) throw new Error(joinProblems(problems));
  return made;
}
