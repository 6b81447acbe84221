import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A place in the sources. */
interface Caller {
  /** Without extension. */
  readonly path: string;
  readonly extension: string;
  readonly line: string;
}

/** What is looked for above a function in the stack. */
export type Method = (...parameters: never[]) => unknown;

/** Of calls of the log in each file of the program as it is shipped, by `line:column` there: the module's path in the project without extension, and its line. */
type BundledCallers = Readonly<Record<string, Readonly<Record<string, readonly [path: string, line: number]>>>>;

const FILE_SCHEME = 'file://';
/** Of an absolute path, on Windows with its drive. */
const PATH_START = /\/|[A-Za-z]:\\/;
const DRIVE_OF_URL = /^\/([A-Za-z]:)/;

/** Places that have been asked for, by file and position in it. */
const known = new Map<string, Map<number, Caller>>();

/**
 * The place that called `method`; costs a stack frame, so it is asked for only when a line is written or a file has its own threshold. V8 prints a trace and
 * counts its lines and columns only for a place that is new: with a small change, that took longer than all of planning it.
 */
export function callerOf(method: Method): Caller {
  const site = siteOf(method);
  const file = site?.getFileName();
  // Node's types do not have it.
  const position = (site as { getPosition?: () => number } | undefined)?.getPosition?.();
  if (site === undefined || !file || position === undefined) return UNKNOWN;
  let places = known.get(file);
  if (places === undefined) known.set(file, (places = new Map<number, Caller>()));
  let caller = places.get(position);
  if (caller === undefined) places.set(position, (caller = placeOf(file, site)));
  return caller;
}

const UNKNOWN: Caller = { path: 'unknown', extension: '', line: '0' };

function siteOf(method: Method): NodeJS.CallSite | undefined {
  const { stackTraceLimit } = Error;
  const prepare: unknown = Reflect.get(Error, 'prepareStackTrace');
  const trace: { stack?: NodeJS.CallSite } = {};
  try {
    Error.stackTraceLimit = 1;
    Error.prepareStackTrace = nearest;
    Error.captureStackTrace(trace, method);
    return trace.stack;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Reflect.set(Error, 'prepareStackTrace', prepare);
  }
}

function nearest(_: Error, [site]: NodeJS.CallSite[]): NodeJS.CallSite | undefined {
  return site;
}

function placeOf(file: string, site: NodeJS.CallSite): Caller {
  const place = parseFrame(`${file}:${site.getLineNumber()}:${site.getColumnNumber()}`);
  if (place === null) return UNKNOWN;
  const { column, ...caller } = place;
  return bundledCaller(caller.path + caller.extension, `${caller.line}:${column}`) ?? caller;
}

/** A line of a stack trace; null: it names no file. */
export function parseFrame(frame: string): (Caller & { readonly column: string }) | null {
  const match = /(\.[cm]?[jt]s):(\d{1,9}):(\d{1,9})\)?$/.exec(frame);
  if (match === null) return null;
  const [, extension = '', line = '', column = ''] = match;
  const before = frame.slice(0, match.index);
  const scheme = before.indexOf(FILE_SCHEME);
  const path = before.slice(scheme < 0 ? before.search(PATH_START) : scheme + FILE_SCHEME.length);
  return { path: path.replace(DRIVE_OF_URL, '$1'), extension, line, column };
}

export function printCaller({ path, extension, line }: Caller): string {
  return `${path.replace(/^.*[/\\]/, '')}${extension}:${line}`;
}

const THIS_FILE = fileURLToPath(import.meta.url);
let bundled: BundledCallers | null = null;

/**
 * Null: the program runs as single modules, which need no such list. The folder is not compared: what V8 compiled beforehand knows the one where that was.
 */
function bundledCaller(file: string, place: string): Caller | null {
  bundled ??= readCallers();
  const [path, line] = bundled[basename(file)]?.[place] ?? [];
  if (path === undefined) return null;
  return { path: join(dirname(THIS_FILE), '..', path), extension: '.ts', line: String(line) };
}

function readCallers(): BundledCallers {
  try {
    return JSON.parse(readFileSync(join(dirname(THIS_FILE), 'callers.json'), 'utf8')) as BundledCallers;
  } catch {
    return {};
  }
}
