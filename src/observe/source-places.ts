import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Place {
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
 * Reads the map of the program that is one file, which takes a moment and megabytes: for who asks for a profile, and for last words. Where the program runs as
 * single modules, or its map is gone, places are left as they are.
 */
export function readSourcePlaces(program: string = THIS_FILE): FindSource {
  let map: SourceMap;
  try {
    map = new SourceMap(JSON.parse(readFileSync(`${program}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    return (place) => place;
  }
  return (place) => {
    if (place.file !== program) return place;
    const found = map.findEntry(place.line - 1, place.column - 1);
    if (!('originalSource' in found)) return place;
    const { originalSource, originalLine, originalColumn } = found;
    return {
      file: resolve(dirname(program), originalSource),
      line: originalLine + 1,
      column: originalColumn + 1,
    };
  };
}

/** An error's stack with the places of the sources. */
export function sourceStack(stack: string, program: string = THIS_FILE): string {
  if (!stack.includes(basename(program))) return stack;
  const find = readSourcePlaces(program);
  // A path begins where nothing of it comes before: every slash of a long one would be tried.
  const places = /(?<![^\s():])(\/[^\s():]+):(\d{1,9}):(\d{1,9})/g;
  return stack.replace(places, (text, file: string, line: string, column: string) => {
    const place = { file, line: Number(line), column: Number(column) };
    const source = find(place);
    return source === place ? text : `${source.file}:${source.line}:${source.column}`;
  });
}
