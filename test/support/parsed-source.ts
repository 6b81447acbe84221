import ts from 'typescript';

const parsed = new Map<string, ts.SourceFile>();

/** TypeScript of a file, parsed once for all tests of the process; without what JSDoc says. */
export function parsedSource(path: string, text: string): ts.SourceFile {
  const key = `${path.endsWith('x') ? 'tsx' : 'ts'} ${text}`;
  const known = parsed.get(key);
  if (known !== undefined) return known;
  const options = {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  };
  const source = ts.createSourceFile(path, text, options, true);
  parsed.set(key, source);
  return source;
}
