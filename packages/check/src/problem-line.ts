import type { Report } from '../../../src/config/tables/report.js';

/** Takes `value: detail` apart, where the text begins with a value as problems show it. */
export function splitValue(detail: string): Pick<Report, 'value' | 'problem'> {
  const [value = ''] =
    /^(?:"(?:[^"\\]|\\.)*"|-?\d[\d.e+-]*s?|true|false|null|\[…\]|\{…\}|a list|a mapping)(?=: )/.exec(detail) ?? [];
  if (value === '') return { value: null, problem: detail };
  return { value: value === 'null' ? null : value, problem: detail.slice(value.length + 2) };
}
