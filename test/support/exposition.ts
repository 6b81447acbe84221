/** Reads Prometheus' text format strictly enough to notice what a scraper would. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: readonly Sample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;

/** @throws Error on a line that does not belong where it is. */
export function parseExposition(text: string): ReadonlyMap<string, MetricFamily> {
  const families = new Map<string, MetricFamily & { readonly samples: Sample[] }>();
  let current: (MetricFamily & { readonly samples: Sample[] }) | null = null;
  if (!text.endsWith('\n')) throw new Error('the text does not end with a line feed');
  const lines = text.slice(0, -1).split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const help = /^# HELP (\S+) (.+)$/.exec(line);
    if (help !== null) {
      const [, name = '', words = ''] = help;
      const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(lines[++at] ?? '');
      if (type?.[1] !== name) throw new Error(`no type after the help of ${name}`);
      if (families.has(name)) throw new Error(`${name} appears twice`);
      current = { name, help: words, type: type[2] ?? '', samples: [] };
      families.set(name, current);
      continue;
    }
    if (line === '# EOF' && at === lines.length - 1) break;
    const sample = SAMPLE.exec(line);
    if (sample === null || current === null) throw new Error(`not a sample: ${line}`);
    const [, name = '', labels = '', value = ''] = sample;
    if (!name.startsWith(current.name)) throw new Error(`${name} among the samples of ${current.name}`);
    current.samples.push({ name, labels: parseLabels(labels), value: value === '+Inf' ? Infinity : Number(value) });
  }
  return families;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/y;
  while (label.lastIndex < text.length) {
    const match = label.exec(text);
    if (match === null) throw new Error(`not labels: ${text}`);
    const [, name = '', value = ''] = match;
    if (name in labels) throw new Error(`label ${name} twice: ${text}`);
    labels[name] = value.replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
  }
  return labels;
}

/** The value of the one sample with exactly these labels; null when there is none. */
export function valueOf(
  families: ReadonlyMap<string, MetricFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  const print = (set: Readonly<Record<string, string>>): string => JSON.stringify(Object.entries(set).sort());
  const samples = [...families.values()].flatMap((family) => family.samples);
  return samples.find((sample) => sample.name === name && print(sample.labels) === print(labels))?.value ?? null;
}
