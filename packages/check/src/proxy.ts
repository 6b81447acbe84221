import { decodeConfiguration } from '../../../src/config/decode.js';
import { KIND, type KubeProxyConfiguration } from '../../../src/config/document.js';
import { applyPlatformDefaults } from '../../../src/config/effective.js';
import { describeIneffective } from '../../../src/config/ineffective.js';
import { describeLimitations } from '../../../src/config/scheduler.js';
import { validateConfiguration } from '../../../src/config/validate.js';
import { withoutPlaceholders } from '../../../src/config/written-out.js';
import type { Mapping } from '../../../src/config/yaml.js';
import type { Report } from '../../../src/config/tables/report.js';
import { remarked, STRICT } from '../../../src/config/tables/settings.js';

/**
 * Reads a proxy's configuration as the proxy itself does, so that there is one truth: its own decoding, rules and warnings.
 *
 * @returns the document with its defaults; null where fields could not be read.
 */
export function readProxy(mapping: Mapping, report: (report: Report) => void): KubeProxyConfiguration | null {
  const found: Report[] = [];
  decodeConfiguration(mapping, (problem) => found.push(problem));
  for (const problem of found) report(shown(problem));
  if (found.some(({ rule }) => !STRICT.includes(rule))) return null;
  const meant = withoutPlaceholders(mapping);
  const { platform } = process;
  const document = applyPlatformDefaults(decodeConfiguration(meant.mapping), platform);
  const ambiguous = meant.ambiguous.map((field) =>
    remarked(`${KIND}.${field}`, 'placeholder', 'is 0, which is taken for unset here'),
  );
  for (const problem of [
    ...validateConfiguration(document, platform),
    ...ambiguous,
    ...describeIneffective(document, true),
    ...describeLimitations(document),
  ])
    report(shown(problem));
  return document;
}

/** A problem as those of other kinds are shown. */
function shown({ value, ...problem }: Report): Report {
  const isMissing = problem.rule === 'required';
  return {
    ...problem,
    value: value === 'null' ? null : value,
    problem: isMissing ? `is missing: ${problem.problem}` : problem.problem,
  };
}
