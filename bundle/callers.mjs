import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';

const METHOD = /\.(info|warn|error|enabled)\(/g;

/**
 * Where the bundle calls methods that a logger has, by `line:column` as a stack counts them, from 1: the module's path below src/, without extension, and
 * the line.
 *
 * @param map a source map
 * @param folder in which the map is
 */
export function callersOf(map, folder) {
  const bundle = readFileSync(join(folder, map.file ?? 'pointsman.js'), 'utf8');
  const entries = new SourceMap(map);
  const callers = {};
  bundle.split('\n').forEach((text, line) => {
    for (const { index } of text.matchAll(METHOD)) {
      const column = index + 1;
      const found = entries.findEntry(line, column);
      const path = /^\.\.\/src\/(.+)\.ts$/.exec(found.originalSource ?? '')?.[1];
      if (path !== undefined) callers[`${line + 1}:${column + 1}`] = [path, found.originalLine + 1];
    }
  });
  return callers;
}
