import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/** Finds where the sources say what stands at a place of the program. */
export type FindSource = (place: Place) => Place;

const THIS_FILE = fileURLToPath(import.meta.url);

/**
 * Finds places by the maps beside the program's files, each of which takes a moment and megabytes to read: for who asks for a profile, and for last words. Files are known by
 * their names, as what V8 compiled beforehand knows the folder where that was. Where the program runs as single modules, or a map is gone, places are left as
 * they are.
 */
export function readSourcePlaces(program: string = THIS_FILE): FindSource {
  const folder = dirname(program);
  const maps = new Map<string, SourceMap | null>();
  return (place) => {
    const name = basename(place.file);
    let map = maps.get(name);
    if (map === undefined) maps.set(name, (map = readMap(join(folder, `${name}.map`))));
    const found = map?.findEntry(place.line - 1, place.column - 1);
    if (found === undefined || !('originalSource' in found)) return place;
    const { originalSource, originalLine, originalColumn } = found;
    return {
      file: resolve(folder, originalSource),
      line: originalLine + 1,
      column: originalColumn + 1,
    };
  };
}

function readMap(path: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')) as SourceMapPayload);
  } catch {
    return null;
  }
}

/** An error's stack with the places of the sources. */
export function sourceStack(stack: string, program: string = THIS_FILE): string {
  const find = readSourcePlaces(program);
  // A path begins where nothing of it comes before: every slash of a long one would be tried.
  const places = /(?<![^\s():])(\/[^\s():]+):(\d{1,9}):(\d{1,9})/g;
  return stack.replace(places, (text, file: string, line: string, column: string) => {
    const place = { file, line: Number(line), column: Number(column) };
    const source = find(place);
    return source === place ? text : `${source.file}:${source.line}:${source.column}`;
  });
}
