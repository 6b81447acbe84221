import { invalid } from './errors.js';
import type { FlagName } from './flag-table.js';
import { numberFlag, settingOf, textFlag, type CommandLine } from './flags.js';

/** Which requests to the metrics address are written down, and where. */
export interface AuditConfig {
  /** Path of a `Policy` of audit.k8s.io. */
  readonly policyFile: string;
  readonly mode: AuditMode;
  readonly log: LogFileConfig;
}

const AUDIT_MODES = ['batch', 'blocking', 'blocking-strict'] as const;
/**
 * As of the API server (`--audit-log-mode`). `batch`: no request waits for its Events. `blocking`: it waits until they are written or lost. `blocking-strict`:
 * one whose `RequestReceived` is lost fails.
 */
export type AuditMode = (typeof AUDIT_MODES)[number];

/** A file that is turned over when it has grown. */
export interface LogFileConfig {
  /** `-`: the standard output. */
  readonly path: string;
  readonly maxBytes: number;
  /** How many former files are kept; 0: all. */
  readonly maxBackups: number;
  /** How old former files may be, in milliseconds; 0: as old as they like. */
  readonly maxAgeMs: number;
}

const DEFAULT_MEGABYTES = 100;
const MEGABYTE = 1 << 20;
const DAY_MS = 86_400_000;

/** Null: nothing is written down. */
export function readAudit(line: CommandLine, problems: string[]): AuditConfig | null {
  const policyFile = textFlag(line, 'audit-policy-file');
  const log = readLogFile(line, 'audit-log', problems);
  const format = settingOf(line, 'audit-log-format');
  if (format !== 'json') problems.push(invalid('--audit-log-format', format, 'must be json'));
  const modeText = settingOf(line, 'audit-log-mode');
  const mode = AUDIT_MODES.find((each) => each === modeText);
  if (mode === undefined)
    problems.push(invalid('--audit-log-mode', modeText, `must be one of ${AUDIT_MODES.join(', ')}`));
  if (policyFile !== '' && log === null) problems.push('--audit-log-path: Required value: beside --audit-policy-file');
  if (policyFile === '' && log !== null) problems.push('--audit-policy-file: Required value: beside --audit-log-path');
  return policyFile === '' || log === null ? null : { policyFile, mode: mode ?? 'batch', log };
}

/** Flags about a file that is not there. */
export function unusedLimits(
  { given }: CommandLine,
  prefix: 'audit-log' | 'change-log',
  log: LogFileConfig | null,
): readonly string[] {
  const why = log === null ? `without --${prefix}-path` : log.path === '-' ? 'on the standard output' : null;
  if (why === null) return [];
  const limits = ['maxage', 'maxbackup', 'maxsize'].map((limit) => `${prefix}-${limit}`);
  return limits.filter((flag) => given.has(flag)).map((flag) => `--${flag}: has no effect ${why}`);
}

/** @param prefix of four flags. Null: their file is not asked for. */
export function readLogFile(
  line: CommandLine,
  prefix: 'audit-log' | 'change-log',
  problems: string[],
): LogFileConfig | null {
  const number = (name: FlagName): number => {
    const value = numberFlag(line, name) ?? 0;
    if (value < 0) problems.push(invalid(`--${name}`, value, 'must be greater than or equal to 0'));
    return Math.max(0, value);
  };
  const limits = {
    maxBytes: (number(`${prefix}-maxsize`) || DEFAULT_MEGABYTES) * MEGABYTE,
    maxBackups: number(`${prefix}-maxbackup`),
    maxAgeMs: number(`${prefix}-maxage`) * DAY_MS,
  };
  const path = textFlag(line, `${prefix}-path`);
  return path === '' ? null : { path, ...limits };
}
