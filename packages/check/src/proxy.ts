import { decodeConfiguration } from '../../../src/config/decode.js';
import { KIND, type KubeProxyConfiguration } from '../../../src/config/document.js';
import { applyPlatformDefaults } from '../../../src/config/effective.js';
import { describeIneffective } from '../../../src/config/ineffective.js';
import { describeLimitations } from '../../../src/config/scheduler.js';
import type { Findings } from '../../../src/config/reader.js';
import { validateConfiguration } from '../../../src/config/validate.js';
import { withoutPlaceholders } from '../../../src/config/written-out.js';
import { Mapping } from '../../../src/config/yaml.js';
import type { Report } from '../../../src/config/tables/report.js';
import { splitValue } from './problem-line.js';

/**
 * Reads a proxy's configuration as the proxy itself does, so that there is one truth: its own decoding, rules and warnings, whose lines are taken apart.
 *
 * @returns the document with its defaults; null where fields could not be read.
 */
export function readProxy(mapping: Mapping, report: (report: Report) => void): KubeProxyConfiguration | null {
  const found: Findings = { strict: [], fatal: [] };
  decodeConfiguration(mapping, found);
  for (const problem of found.fatal) report(adopt(problem, 'error', 'type'));
  for (const problem of found.strict) report(adoptStrict(problem));
  if (found.fatal.length > 0) return null;
  const meant = withoutPlaceholders(mapping);
  const { platform } = process;
  const document = applyPlatformDefaults(decodeConfiguration(meant.mapping, { strict: [], fatal: [] }), platform);
  for (const problem of validateConfiguration(document, platform)) report(adopt(problem, 'error', 'value'));
  for (const field of meant.doubtful)
    report(adopt(`${KIND}.${field}: is 0, which is taken for unset here`, 'warning', 'placeholder'));
  for (const problem of describeIneffective(document, true)) report(adopt(problem, 'warning', 'no-effect'));
  for (const problem of describeLimitations(document)) report(adopt(problem, 'warning', 'limitation'));
  return document;
}

const VALUED = [': Invalid value: ', ': Unsupported value: '];
const PLAIN = [': Required value: ', ': Forbidden: '];

/** A line of `src/config`: `path: Invalid value: value: detail`, or without a value. */
function adopt(line: string, severity: Report['severity'], rule: string): Report {
  const rest = { severity, rule, value: null, expected: '' };
  for (const marker of [...VALUED, ...PLAIN, ': ']) {
    const at = line.indexOf(marker);
    if (at < 0) continue;
    const path = line.slice(0, at);
    const detail = line.slice(at + marker.length);
    if (VALUED.includes(marker)) return { ...rest, path, ...splitValue(detail) };
    return { ...rest, path, problem: marker === PLAIN[0] ? `is missing: ${detail}` : detail };
  }
  return { ...rest, path: KIND, problem: line };
}

/** A field that is unknown, or given twice, and maybe in the wrong case. */
function adoptStrict(line: string): Report {
  const report = adopt(line, 'error', 'unknown-field');
  if (report.problem !== 'unknown field') return { ...report, rule: 'duplicate-field', problem: 'is given twice' };
  const known = knownName(report.path.split('.').slice(1));
  if (known === null) return { ...report, problem: 'is an unknown field' };
  return { ...report, rule: 'case', problem: 'has the wrong case', expected: known };
}

/** The field that has the last name of a path but for its case. */
function knownName(path: readonly string[]): string | null {
  const last = path.at(-1)?.toLowerCase();
  let at: unknown = decodeConfiguration(new Mapping([]), { strict: [], fatal: [] });
  for (const name of path.slice(0, -1)) at = isRecord(at) ? at[name] : null;
  return isRecord(at)
    ? (Object.keys(at).find((name) => name.toLowerCase() === last && name !== path.at(-1)) ?? null)
    : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
