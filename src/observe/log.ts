import { inspect } from 'node:util';
import type { Log } from '../base/log.js';
import { printableText } from '../base/printable.js';
import type { LoggingConfig } from '../config/config.js';
import { callerOf, printCaller, type Method } from './caller.js';
import { matchesGlob } from './glob.js';

type LogFields = Readonly<Record<string, unknown>>;

/** Verbosity is counted as Kubernetes counts it: 0 always, 2 changes of state, 4 and above for debugging. */
export interface Logger extends Log {
  /** Whether a line of this verbosity would be written; for details that cost something to gather. */
  enabled(verbosity: number): boolean;
  /** From now on these decide which lines are written. */
  setThresholds(thresholds: LogThresholds): void;
  /** Makes ready to write lines as configured; what it resolves to begins with it. */
  prepare(config: LoggingConfig): Promise<() => void>;
}

type LogThresholds = Pick<LoggingConfig, 'verbosity' | 'vmodule'>;

/** Where lines go and what they are stamped with. */
export interface LogOutput {
  /** Takes one line with its line feed, and whether it reports an error. */
  readonly write: (line: string, isError: boolean) => void;
  /** Milliseconds since the epoch, with a fraction. */
  readonly now: () => number;
  /** Writes what has been gathered. */
  readonly flush: () => void;
}

/** Builds the logger for a format; pino is loaded only where its format is wanted. */
export async function createLogger(config: LoggingConfig, open: (config: LoggingConfig) => LogOutput): Promise<Logger> {
  let output = open(config);
  let sink = await sinkOf(config, output);
  const logger = thresholdLogger(config, (entry) => {
    sink(entry);
  });
  const prepare = async (next: LoggingConfig): Promise<() => void> => {
    const nextOutput = open(next);
    const nextSink = await sinkOf(next, nextOutput);
    return () => {
      output.flush();
      [output, sink] = [nextOutput, nextSink];
      logger.setThresholds(next);
    };
  };
  return { ...logger, prepare };
}

async function sinkOf({ format }: LoggingConfig, output: LogOutput): Promise<Sink> {
  const write = (line: string, isError: boolean): void => {
    output.write(printableText(line), isError);
  };
  return format === 'json' ? await jsonSink({ ...output, write }) : textSink({ ...output, write });
}

interface Entry {
  readonly severity: 'I' | 'W' | 'E';
  readonly verbosity: number;
  readonly message: string;
  /** Null: the line reports no error. */
  readonly error: string | null;
  readonly fields: LogFields;
  /** `file:line`. */
  readonly caller: string;
}

type Sink = (entry: Entry) => void;

/** A file's own threshold replaces the general one, so the caller is looked up early only when files have one. */
function thresholdLogger(config: LogThresholds, sink: Sink): Omit<Logger, 'prepare'> {
  let { verbosity: general } = config;
  let files = config.vmodule;
  const setThresholds = (thresholds: LogThresholds): void => {
    general = thresholds.verbosity;
    files = thresholds.vmodule;
  };
  const allows = (verbosity: number, method: Method): boolean => {
    const path = files.length === 0 ? '' : callerOf(method).path;
    const threshold = files.find(({ filePattern }) => matchesGlob(path, filePattern))?.verbosity ?? general;
    return verbosity <= threshold;
  };
  const enabled = (verbosity: number): boolean => allows(verbosity, enabled);
  const info = (verbosity: number, message: string, fields: LogFields = {}): void => {
    if (!allows(verbosity, info)) return;
    sink({ severity: 'I', verbosity, message, error: null, fields, caller: printCaller(callerOf(info)) });
  };
  const warn = (message: string, fields: LogFields = {}): void => {
    sink({ severity: 'W', verbosity: 0, message, error: null, fields, caller: printCaller(callerOf(warn)) });
  };
  const error = (caught: unknown, message: string, fields: LogFields = {}): void => {
    const text = caught === null || caught === undefined ? null : errorText(caught);
    sink({ severity: 'E', verbosity: 0, message, error: text, fields, caller: printCaller(callerOf(error)) });
  };
  return { enabled, info, warn, error, setThresholds };
}

/** klog's text: `I1120 11:04:05.123456    4242 main.js:12] "Synced" family="IPv4" operations=3`. Local time. */
function textSink({ write, now }: LogOutput): Sink {
  const pid = String(process.pid).padStart(7);
  const stamp = stamper();
  return ({ severity, message, error, fields, caller }) => {
    let details = error === null ? '' : ` err=${printValue(error)}`;
    for (const key of Object.keys(fields)) details += ` ${key}=${printValue(fields[key])}`;
    write(`${severity}${stamp(now())} ${pid} ${caller}] ${JSON.stringify(message)}${details}\n`, severity === 'E');
  };
}

/** Prints times; what many lines have in common is made once. */
function stamper(): (milliseconds: number) => string {
  const two = (value: number): string => String(value).padStart(2, '0');
  let [second, text] = [Number.NaN, ''];
  return (milliseconds) => {
    const now = Math.floor(milliseconds / 1000);
    if (now !== second) {
      const date = new Date(milliseconds);
      const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
      [second, text] = [now, `${two(date.getMonth() + 1)}${two(date.getDate())} ${time}`];
    }
    return `${text}.${String(Math.floor((milliseconds - now * 1000) * 1000)).padStart(6, '0')}`;
  };
}

function printValue(value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  if (value instanceof Error) return JSON.stringify(errorText(value));
  return JSON.stringify(plain(value));
}

/** Lines as Kubernetes' components write them: ts in milliseconds, caller, msg, v on messages and err on errors. */
async function jsonSink({ write, now }: LogOutput): Promise<Sink> {
  const { pino } = await import('pino');
  const options = {
    base: null,
    // Kubernetes' lines have no level; after a level of no members pino wants the time without its comma.
    timestamp: () => `"ts":${now().toFixed(3)}`,
    formatters: { level: () => ({}) },
  };
  const messages = pino(options, {
    write: (line: string) => {
      write(line, false);
    },
  });
  const errors = pino(options, {
    write: (line: string) => {
      write(line, true);
    },
  });
  return ({ severity, verbosity, message, error, fields, caller }) => {
    const details = Object.entries(fields).map(([key, value]): [string, unknown] => [
      RESERVED.has(key) ? `${key}_` : key,
      plain(value),
    ]);
    const line: object = { caller, ...(severity === 'E' ? {} : { v: verbosity }), ...Object.fromEntries(details) };
    const logger = severity === 'E' ? errors : messages;
    logger.info(error === null ? line : { ...line, err: error }, message);
  };
}

/** Keys a field may not take in a JSON line. */
const RESERVED: ReadonlySet<string> = new Set(['ts', 'msg', 'v', 'caller', 'err']);

/** The value as JSON can hold it: no cycle, no bigint, and errors by their message. */
function plain(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean') return value;
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return String(value);
  try {
    const text = JSON.stringify(value, (_, part: unknown) =>
      typeof part === 'bigint' ? part.toString() : part instanceof Error ? errorText(part) : part,
    );
    const copy: unknown = JSON.parse(text);
    return copy;
  } catch (error) {
    return `unprintable: ${errorText(error)}`;
  }
}

/** An error's message and those of its causes. */
function errorText(error: unknown, depth = 0): string {
  if (!(error instanceof Error))
    return typeof error === 'string' ? error : inspect(error, { depth: 1, breakLength: Infinity });
  const text = error.message || error.name;
  return error.cause === undefined || depth === MAX_CAUSES ? text : `${text}: ${errorText(error.cause, depth + 1)}`;
}

const MAX_CAUSES = 4;
