import { decodeConfiguration } from '../../../src/config/decode.js';
import { KIND, KUBE_PROXY, type KubeProxyConfiguration } from '../../../src/config/document.js';
import { applyPlatformDefaults, LINUX_MODES, modesOf, WINDOWS_MODES } from '../../../src/config/effective.js';
import { describeIneffective } from '../../../src/config/ineffective.js';
import { describeLimitations } from '../../../src/config/scheduler.js';
import { validateConfiguration } from '../../../src/config/validate.js';
import { withoutPlaceholders } from '../../../src/config/written-out.js';
import type { Mapping } from '../../../src/config/yaml.js';
import { printReport, type Report } from '../../../src/config/tables/report.js';
import { checkSettings, remarked, STRICT } from '../../../src/config/tables/settings.js';

/** Purpose of the documents. */
export interface Target {
  /** Minor release of Kubernetes. */
  readonly release: number;
  /** Platform of the nodes; null: as the documents say. */
  readonly platform: NodeJS.Platform | null;
}

/**
 * Reads a proxy's configuration as the proxy itself does, so that there is one truth: its own decoding, rules and warnings.
 *
 * @param target the release that the proxy reports, and the platform of the nodes; null: as the mode says.
 * @returns the document with its defaults; null where fields could not be read.
 */
export function readProxy(
  mapping: Mapping,
  { release, platform }: Target,
  report: (report: Report) => void,
): KubeProxyConfiguration | null {
  const found: Report[] = [];
  decodeConfiguration(mapping, (problem) => found.push(problem));
  for (const problem of found) report(shown(problem));
  if (found.some(({ rule }) => !STRICT.includes(rule))) return null;
  const meant = withoutPlaceholders(mapping);
  const document = decodeConfiguration(meant.mapping);
  for (const field of meant.ambiguous)
    report(remarked(`${KIND}.${field}`, 'placeholder', 'is 0, which is taken for unset here'));
  const judged = judge(document, release, platform === null ? platformsOf(document.mode) : [platform]);
  for (const problem of judged.reports) report(shown(problem));
  return judged.document;
}

/** Where a mode exists; one that is unset or unknown could be meant for each. */
function platformsOf(mode: string): readonly NodeJS.Platform[] {
  const having = PLATFORMS.filter((platform) => modesOf(platform).some((known) => known === mode));
  return having.length > 0 ? having : PLATFORMS;
}

const PLATFORMS = ['linux', 'win32'] as const;

interface Judged {
  readonly document: KubeProxyConfiguration;
  readonly reports: readonly Report[];
}

/** By the first platform that has nothing against the document. Where each has, problems of one alone name it. */
function judge(read: KubeProxyConfiguration, release: number, platforms: readonly NodeJS.Platform[]): Judged {
  const all = platforms.map((platform) => {
    const document = applyPlatformDefaults(read, platform);
    const reports = [
      ...validateConfiguration(document, platform, release),
      ...describeIneffective(document, true),
      ...otherModes(document),
      ...describeLimitations(document),
    ];
    return { platform, document, reports };
  });
  const right = all.find(({ reports }) => !reports.some(({ severity }) => severity === 'error'));
  const [first, ...others] = all;
  if (right !== undefined || first === undefined) return right ?? { document: read, reports: [] };
  const text = (report: Report): string => JSON.stringify(report);
  const errors = all.map(({ platform, reports }) => ({
    name: platform === 'win32' ? 'Windows' : 'Linux',
    reports: reports.filter(({ severity }) => severity === 'error'),
  }));
  const isCommon = (report: Report): boolean =>
    errors.every(({ reports }) => reports.some((other) => text(other) === text(report)));
  const ofOne = errors.flatMap(({ name, reports }) =>
    reports
      .filter((report) => !isCommon(report))
      .map((report) => ({ ...report, problem: `${report.problem}, on ${name}` })),
  );
  const isKept = (report: Report): boolean => others.length === 0 || report.severity === 'warning' || isCommon(report);
  return {
    document: first.document,
    reports: [...first.reports.filter(isKept), ...(others.length === 0 ? [] : ofOne)],
  };
}

/** Values that would be wrong in another mode, where the mode is one. */
function otherModes(document: KubeProxyConfiguration): readonly Report[] {
  const modes: readonly string[] = [...LINUX_MODES, ...WINDOWS_MODES];
  if (!modes.includes(document.mode)) return [];
  const found = (mode: string): readonly (readonly [string, Report])[] =>
    checkSettings(KUBE_PROXY, document, KIND, mode).map((report) => [printReport(report), report]);
  const own = new Map(found(document.mode));
  return [...new Map(modes.flatMap(found))]
    .filter(([text]) => !own.has(text))
    .map(([, report]) => ({ ...report, severity: 'warning' }));
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
