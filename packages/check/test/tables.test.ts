// The tables themselves: each rule has a golden document that breaks it, and nothing is taken that a table refuses, whatever the field.
import t from 'tap';
import { KINDS as TABLES, tableFor } from '../src/kinds.js';
import { CHECKED_MINOR } from '../../../src/config/version.js';
import { readProxy } from '../src/proxy.js';
import { decodeConfiguration } from '../../../src/config/decode.js';
import { readByTable } from '../../../src/config/tables/document.js';
import { readStruct } from '../../../src/config/tables/read.js';
import { printReport, type Report } from '../../../src/config/tables/report.js';
import { fieldOf, type Rule } from '../../../src/config/tables/types.js';
import { Mapping, readMappings } from '../../../src/config/yaml.js';
import { RELEASE, SECRET } from './golden/golden.js';
import { KINDS } from './golden/kinds.js';
import { isSecret, misplaced, mutationsOf, placesOf, whole, type Place } from './walk.js';

const PLACES = placesOf(TABLES);
function versionsOf({ table }: Place): readonly string[] {
  return Object.keys(table.versions);
}

/** What is said of single fields: without rules on several. */
function read({ type, path }: Place, mapping: Mapping, version: string, release = CHECKED_MINOR): readonly Report[] {
  const found: Report[] = [];
  const report = (each: Report): void => {
    found.push(each);
  };
  readStruct({ ...type, rules: [] }, mapping, path, { version, release, report, readEmbedded: () => null });
  return found;
}

t.test('a mapping with every field of a table is taken', (t) => {
  for (const place of PLACES)
    for (const version of versionsOf(place)) {
      const reported = read(place, whole(place.type, version), version);
      const own = reported.filter(
        ({ severity, rule, path }) =>
          severity === 'error' && path.lastIndexOf('.') <= place.path.length && rule !== 'required',
      );
      t.same(own.map(printReport), [], `${version} ${place.path}`);
    }
  t.end();
});

t.test('a document with one wrong value is refused', (t) => {
  let count = 0;
  const taken: string[] = [];
  for (const place of PLACES)
    for (const version of versionsOf(place)) {
      for (const { what, path, mapping, release } of mutationsOf(place.type, version)) {
        count++;
        const at = `${place.path}.${path}`;
        const found = read(place, mapping, version, release);
        const isRefused = found.some((report) => report.severity === 'error' && report.path === at);
        if (!isRefused) taken.push(`${version} ${at} ${what}: ${found.map(printReport).join('; ')}`);
      }
    }
  t.same(taken, []);
  t.ok(count > 5000, `${count} mappings`);
  t.end();
});

/** Values that a field does not take that has a default. */
function wrongFor(initial: unknown): readonly unknown[] {
  if (typeof initial === 'boolean') return ['true', 1, new Mapping([])];
  if (typeof initial === 'number') return ['1', true, new Mapping([])];
  if (typeof initial === 'string') return [true, new Mapping([]), [[]]];
  return initial === null || Array.isArray(initial) ? ['x', new Mapping([])] : ['x', 1, []];
}

t.test('the proxy’s own configuration with one wrong value is refused', (t) => {
  const taken: string[] = [];
  const nest = (names: readonly string[], value: unknown): unknown =>
    names.reduceRight((inner: unknown, name) => new Mapping([[name, inner]]), value);
  const refuses = (names: readonly string[], value: unknown): void => {
    const found: Report[] = [];
    const document = nest(names, value);
    if (document instanceof Mapping)
      readProxy(document, { release: CHECKED_MINOR, platform: null }, (report) => found.push(report));
    const at = ['KubeProxyConfiguration', ...names].join('.');
    if (!found.some(({ severity, path }) => severity === 'error' && path === at)) taken.push(`${at}: ${String(value)}`);
  };
  const visit = (names: readonly string[], initial: unknown): void => {
    if (names.length > 0) for (const value of wrongFor(initial)) refuses(names, value);
    if (typeof initial !== 'object' || initial === null || Array.isArray(initial)) return;
    const fields = Object.entries(initial).filter(([name]) => !['apiVersion', 'kind'].includes(name));
    for (const [name, value] of fields) visit([...names, name], value);
    for (const [name] of fields) refuses([...names, name.charAt(0).toUpperCase() + name.slice(1)], 1);
    if (fields.length > 0) refuses([...names, 'nobodyKnows'], 1);
  };
  visit([], decodeConfiguration(new Mapping([])));
  t.same(taken, []);
  t.end();
});

t.test('a value in the place of a secret, or in a mapping that holds one, is never shown', (t) => {
  let count = 0;
  const shown: string[] = [];
  const look = (place: Place, mapping: Mapping, version: string): void => {
    count++;
    const lines = read(place, mapping, version).map(printReport);
    if (lines.some((line) => line.includes(SECRET))) shown.push(`${version} ${place.path}: ${lines.join('; ')}`);
  };
  for (const place of PLACES)
    for (const version of versionsOf(place)) {
      const secrets = Object.entries(place.type.fields).filter(([, of]) => isSecret(fieldOf(of)));
      const base = whole(place.type, version);
      for (const [name] of secrets)
        for (const value of misplaced(SECRET)) look(place, new Mapping([...base.entries, [name, value]]), version);
      // A line that is indented too little, or whose key and value have changed places.
      if (secrets.length > 0) look(place, new Mapping([...base.entries, [SECRET, SECRET]], [SECRET]), version);
    }
  t.same(shown, []);
  t.ok(count > 400, `${count} mappings`);
  t.end();
});

t.test('each rule of each table is broken by a golden document', (t) => {
  const rules = new Map<Rule, string>();
  for (const { path, type } of PLACES) for (const rule of type.rules) rules.set(rule, `${path}: ${rule.name}`);
  const broken = new Set<Rule>();
  let current: Rule | null = null;
  // The tables are of this process alone.
  for (const rule of rules.keys()) {
    const { check } = rule;
    Object.assign(rule, {
      check: (section: Parameters<Rule['check']>[0]) => {
        current = rule;
        check(section);
        current = null;
      },
    });
  }
  const report = (): void => {
    if (current !== null) broken.add(current);
  };
  for (const { apiVersion, kind, release = RELEASE, wrong } of KINDS) {
    const table = tableFor({ apiVersion, kind });
    for (const [body] of table === null ? [] : wrong) {
      const [document] = readMappings(body);
      if (table !== null && document instanceof Mapping)
        readByTable(table, { apiVersion, kind }, document, kind, {
          report,
          release,
          tableFor,
          reportUnknownKind: () => undefined,
        });
    }
  }
  t.same(
    [...rules].filter(([rule]) => !broken.has(rule)).map(([, name]) => name),
    [],
  );
  t.end();
});
