import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ALERTS, DASHBOARDS, dashboardQueries, metricsOf, ruleGroups } from '../support/monitoring.js';
import { documents, fieldsOf } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';

const RULES = ruleGroups().flatMap(({ rules }) => rules);
const ALERT_NAMES = RULES.flatMap(({ alert }) => alert ?? []);

t.test('PrometheusRule has the groups of the plain rule file', (t) => {
  const [object = {}] = documents(join(ALERTS, 'prometheus-rule.yaml'));
  t.same(fieldsOf(object['spec'])['groups'], ruleGroups());
  t.end();
});

t.test('Each alert has a page in the runbook, and each page an alert', (t) => {
  for (const { alert, annotations = {} } of RULES) {
    if (alert === undefined) continue;
    t.equal(annotations['runbook'], `docs/runbook/${alert}.md`);
    t.ok(existsSync(projectFile(`docs/runbook/${alert}.md`)), alert);
  }
  const pages = readdirSync(projectFile('docs/runbook')).filter((name) => /^Pointsman.*\.md$/.test(name));
  t.same(pages.map((name) => name.slice(0, -'.md'.length)).sort(), [...ALERT_NAMES].sort());
  const index = readFileSync(projectFile('docs/runbook/README.md'), 'utf8');
  for (const name of ALERT_NAMES) t.match(index, `(${name}.md)`, `${name} is in the index`);
  t.end();
});

t.test('Each alert is tested with series that fire it and with series that do not', (t) => {
  const text = readFileSync(join(ALERTS, 'rules.test.yaml'), 'utf8');
  for (const name of ALERT_NAMES) {
    t.match(text, `name: ${name} fires\n`);
    t.match(text, `name: ${name} does not fire\n`);
  }
  t.end();
});

t.test('Rules and dashboards name metrics in docs/metrics.md, and recording rules', (t) => {
  const pages = ['metrics', 'telemetry'].map((name) => readFileSync(projectFile(`docs/${name}.md`), 'utf8')).join('');
  const documented = new Set([...pages.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name));
  const recorded = new Set(RULES.flatMap(({ record }) => record ?? []));
  const asked = [
    ...RULES.map(({ alert, record, expr }) => ({ of: alert ?? record ?? '', expr })),
    ...DASHBOARDS.flatMap(dashboardQueries),
  ];
  for (const { of, expr } of asked)
    for (const name of metricsOf(expr)) {
      const family = name.replace(/_(?:bucket|sum|count)$/, '');
      t.ok(recorded.has(name) || documented.has(name) || documented.has(family), `${of}: ${name}`);
    }
  t.end();
});
