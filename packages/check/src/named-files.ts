import { dirname, join, isAbsolute } from 'node:path';
import { printValue } from '../../../src/config/errors.js';
import type { Document } from './documents.js';
import type { Finding } from './findings.js';

/** A file that a document names for more configuration. */
interface NamedFile {
  readonly file: string;
  /** The finding about a field whose file cannot be read, without the reason. */
  readonly finding: Finding;
}

/** The files of admission plugins; paths are relative to the document's own. */
export function namedFiles({ file, document, kind, section }: Document): readonly NamedFile[] {
  const plugins = kind === 'AdmissionConfiguration' ? (section?.sections('plugins') ?? []) : [];
  return plugins
    .filter((plugin) => plugin.has('path') && !plugin.isGiven('configuration'))
    .map((plugin) => {
      const path = plugin.text('path');
      const finding: Finding = {
        severity: 'warning',
        rule: 'named-file',
        file,
        document,
        line: null,
        path: plugin.pathOf('path'),
        value: printValue(path),
        problem: '',
        expected: '',
      };
      return { file: isAbsolute(path) ? path : join(dirname(file), path), finding };
    });
}
