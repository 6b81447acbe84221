// A field is one row of the table: everything else follows. Here the table has a row more than the program's own.
import t from 'tap';
import { within } from '../../src/config/checks.js';
import { differences } from '../../src/config/compare.js';
import { KIND, KUBE_PROXY } from '../../src/config/document.js';
import { readFlagValue, Refusal } from '../../src/config/flag-values.js';
import { printProblem, printReport, type Report } from '../../src/config/tables/report.js';
import {
  checkSettings,
  flagsOf,
  inactive,
  readSettings,
  withValue,
  withoutInactive,
  written,
} from '../../src/config/tables/settings.js';
import { field, fieldOf, int32, struct, type StructType } from '../../src/config/tables/types.js';
import { Mapping } from '../../src/config/yaml.js';

const ROW = field(int32, {
  default: 3,
  modes: ['ipvs'],
  checks: [within(0, 9)],
  isCleared: true,
  flag: { name: 'ipvs-extra', help: 'one more' },
});

function fieldsOf(section: string): StructType['fields'] {
  const { type } = fieldOf(KUBE_PROXY.fields[section] ?? int32);
  return type.is === 'struct' ? type.fields : {};
}

const TABLE = struct({ ...KUBE_PROXY.fields, ipvs: struct({ ...fieldsOf('ipvs'), extra: ROW }) });

function read(extra: unknown, found: Report[] = []): Readonly<Record<string, unknown>> {
  const mapping = new Mapping([['ipvs', new Mapping([['extra', extra]])]]);
  return readSettings(TABLE, mapping, KIND, (report) => found.push(report));
}

t.test('one row of the table decodes its default and value, and refuses wrong ones', (t) => {
  t.match(read(null), { ipvs: { extra: 3, scheduler: '' } });
  t.match(read(5), { ipvs: { extra: 5 } });
  const found: Report[] = [];
  t.match(read('x', found), { ipvs: { extra: 3 } });
  const detail = 'must be an integer in the range [-2147483648, 2147483647]';
  t.same(found.map(printProblem), [`${KIND}.ipvs.extra: Invalid value: "x": ${detail}`], 'as the proxy prints it');
  t.same(found.map(printReport), [`${KIND}.ipvs.extra: "x": ${detail}`], 'as check prints it');
  const misspelt: Report[] = [];
  const wrong = new Mapping([['ipvs', new Mapping([['Extra', 1]])]]);
  readSettings(TABLE, wrong, KIND, (report) => misspelt.push(report));
  t.same(misspelt.map(printReport), [`${KIND}.ipvs.Extra: has the wrong case: should be extra`]);
  t.end();
});

t.test('one row of the table defines a flag', (t) => {
  const flags = flagsOf(TABLE);
  const flag = flags.find(({ name }) => name === 'ipvs-extra');
  t.equal(flags.length, flagsOf(KUBE_PROXY).length + 1);
  t.match(flag, { type: 'int32', initial: '3', help: 'one more' });
  const value = readFlagValue(flag?.type ?? 'string', '7', undefined);
  t.notOk(value instanceof Refusal);
  t.match(flag?.set?.(read(null), 7), { ipvs: { extra: 7, scheduler: '' } });
  t.end();
});

t.test('one row of the table is validated in its mode only', (t) => {
  const problems = (mode: string): readonly string[] =>
    checkSettings(TABLE, read(10), KIND, mode)
      .map(printProblem)
      .filter((problem) => problem.includes('extra'));
  t.same(problems('ipvs'), [`${KIND}.ipvs.extra: Invalid value: 10: must be within the range [0, 9]`]);
  t.same(problems('iptables'), []);
  t.end();
});

t.test('a field of another mode gives a warning, and counts as its default', (t) => {
  t.same(inactive(TABLE, read(5), read(null), 'nftables'), ['ipvs.extra']);
  t.same(inactive(TABLE, read(3), read(null), 'nftables'), []);
  t.same(inactive(TABLE, read(5), read(null), 'ipvs'), []);
  t.match(withoutInactive(TABLE, read(5), 'nftables'), { ipvs: { extra: 3 } });
  t.match(withoutInactive(TABLE, read(5), 'ipvs'), { ipvs: { extra: 5 } });
  t.end();
});

t.test('one row of the table is written, and its change is found', (t) => {
  t.match(written(TABLE, read(5)), { ipvs: { extra: 5 } });
  t.same(differences(KIND, read(5), read(6)), [{ field: `${KIND}.ipvs.extra`, before: '5', after: '6' }]);
  t.same(withValue({ a: { b: 1, c: 2 } }, ['a', 'b'], 3), { a: { b: 3, c: 2 } });
  t.end();
});
