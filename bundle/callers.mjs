import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';

const METHOD = /\.(info|warn|error|enabled)\(/g;

/**
 * Where the bundle calls methods that a logger has, by `line:column` as a stack counts them, from 1: the module's path in the project, without extension, and
 * the line.
 *
 * @param program path of the bundle; its map is beside it.
 */
export function callersOf(program) {
  const entries = new SourceMap(JSON.parse(readFileSync(`${program}.map`, 'utf8')));
  const callers = {};
  readFileSync(program, 'utf8')
    .split('\n')
    .forEach((text, line) => {
      for (const { index } of text.matchAll(METHOD)) {
        const column = index + 1;
        const found = entries.findEntry(line, column);
        const path = /^\.\.\/((?:src|packages)\/.+)\.ts$/.exec(found.originalSource ?? '')?.[1];
        if (path !== undefined) callers[`${line + 1}:${column + 1}`] = [path, found.originalLine + 1];
      }
    });
  return callers;
}
