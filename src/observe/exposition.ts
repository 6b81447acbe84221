import type { MetricObjectWithValues, MetricValue, MetricValueWithName, Registry } from 'prom-client';
import { parseAccept } from '../base/accept.js';

export type ExpositionFormat = 'text' | 'openmetrics';

export const EXPOSITION_TYPES: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

const OPENMETRICS_VERSIONS = ['1.0.0', '0.0.1'];

/** The format a scraper asks for; text when it asks for neither. */
export function negotiateExposition(accept: string | undefined): ExpositionFormat {
  for (const { type, parameters, quality } of parseAccept(accept)) {
    if (quality === 0) continue;
    const version = parameters.get('version');
    if (type === 'application/openmetrics-text' && (version === undefined || OPENMETRICS_VERSIONS.includes(version)))
      return 'openmetrics';
    if (type === 'text/plain' || type === 'text/*' || type === '*/*') return 'text';
  }
  return 'text';
}

/** A metric with its values, as it is printed. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly values: readonly Sample[];
}

type Family = MetricFamily | MetricObjectWithValues<MetricValue<string>>;
type Sample = MetricValue<string> | MetricValueWithName<string>;

/**
 * All metrics of a registry that have a value, sorted by name. The registry's own text is not used: it shows labelled metrics that have none, and
 * asked for OpenMetrics it renames its counters for good.
 *
 * @param more that are in no registry.
 */
export async function expose(
  registry: Registry,
  format: ExpositionFormat,
  more: readonly MetricFamily[] = [],
): Promise<string> {
  const families = [...(await registry.getMetricsAsJSON()), ...more]
    .filter(({ values }) => values.length > 0)
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const lines = families.flatMap((family) => printFamily(family, format));
  return lines.map((line) => `${line}\n`).join('') + (format === 'openmetrics' ? '# EOF\n' : '');
}

function printFamily({ name, help, type, values }: Family, format: ExpositionFormat): readonly string[] {
  // TypeScript cannot know that prom-client gives the type in words.
  const word = String(type);
  const family = format === 'openmetrics' && word === 'counter' ? name.replace(/_total$/, '') : name;
  const text = escape(help);
  return [
    `# HELP ${family} ${format === 'openmetrics' ? text.replaceAll('"', '\\"') : text}`,
    `# TYPE ${family} ${word}`,
    ...values.map((sample) => printSample(name, sample, format)),
  ];
}

function printSample(name: string, sample: Sample, format: ExpositionFormat): string {
  const own = 'metricName' in sample ? (sample.metricName ?? name) : name;
  const labels = Object.entries(sample.labels).map(([label, value]) => {
    const text = label === 'le' && typeof value === 'number' ? printBound(value, format) : String(value);
    return `${label}="${escape(text).replaceAll('"', '\\"')}"`;
  });
  return `${own}${labels.length > 0 ? `{${labels.join(',')}}` : ''} ${printNumber(sample.value)}`;
}

/** OpenMetrics wants bounds as floating-point numbers, `1.0` rather than `1`. */
function printBound(value: number, format: ExpositionFormat): string {
  const text = printNumber(value);
  return format === 'openmetrics' && /^\d+$/.test(text) ? `${text}.0` : text;
}

function printNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-Inf' : '+Inf';
  return String(value);
}

function escape(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
