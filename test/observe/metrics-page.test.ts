// When a metric is added, put the row that this test prints into the page.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { metricRows } from '../support/metrics-page.js';

const PAGE = readFileSync(projectFile('docs/metrics.md'), 'utf8');

for (const [title, expected] of metricRows())
  t.test(`docs/metrics.md lists the metrics of: ${title}`, (t) => {
    const [, section = ''] = PAGE.split(new RegExp(`^## ${title}$`, 'm'));
    const rows = (section.split(/^## /m)[0] ?? '').match(/^\| `.*$/gm) ?? [];
    const normal = (text: string): string => text.replaceAll(/ +/g, ' ');
    t.same(rows.map(normal), expected.map(normal));
    t.end();
  });
