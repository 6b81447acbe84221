import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { projectFile } from './lab/agent.js';

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Rule[];
}

export interface Query {
  /** Title of the panel, or name of the rule. */
  readonly of: string;
  readonly expr: string;
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly panels: readonly Panel[];
}

export const ALERTS = projectFile('deploy/components/alerts');
export const DASHBOARDS = ['cluster', 'node', 'service'] as const;

/** Of Prometheus' own form. */
export function ruleGroups(): readonly RuleGroup[] {
  return (load(readFileSync(join(ALERTS, 'rules.yaml'), 'utf8')) as { readonly groups: readonly RuleGroup[] }).groups;
}

/** What the panels of a dashboard ask, with Grafana's variables in place: all of everything, over a minute. */
export function dashboardQueries(name: (typeof DASHBOARDS)[number]): readonly Query[] {
  const { templating, panels } = JSON.parse(
    readFileSync(projectFile(`deploy/components/dashboards/${name}.json`), 'utf8'),
  ) as Dashboard;
  const variables = templating.list.map((each) => each.name).filter((each) => each !== 'datasource');
  const filled = (expr: string): string =>
    variables
      .reduce((text, variable) => text.replaceAll(`$${variable}`, '.*'), expr)
      .replaceAll('$__rate_interval', '1m');
  return panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ of: title, expr: filled(expr) })));
}

/** Names of metrics in an expression, of those that have one of our prefixes. */
export function metricsOf(expr: string): readonly string[] {
  const names = expr.match(/\b(?:pointsman|kubeproxy|rest_client|nodejs|process|kubernetes)[a-z0-9_:]*/g) ?? [];
  return names.filter((name) => name.includes('_'));
}
