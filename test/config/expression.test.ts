// Expressions in CEL: regular expressions have RE2's syntax and meaning, and no text takes more than linear time.
import t from 'tap';
import { compile, expression } from '../../src/config/tables/expression.js';
import { compileRegularExpression, loadRegularExpressions } from '../../src/config/tables/regular-expression.js';
import { cpuTime } from '../support/cpu-time.js';

t.test('the library of regular expressions is loaded only when an expression needs it', async (t) => {
  // Another test may have loaded it for the module that all share.
  const url = new URL('../../src/config/tables/regular-expression.js?fresh', import.meta.url).href;
  const fresh = (await import(url)) as typeof import('../../src/config/tables/regular-expression.js');
  t.throws(() => fresh.compileRegularExpression('a'), /not loaded/);
  const warnings: string[] = [];
  const read = (warn: (problem: string) => void): boolean => {
    warn('deprecated');
    return fresh.compileRegularExpression('a').matches('a');
  };
  t.equal(await fresh.withRegularExpressions(read, (problem) => warnings.push(problem)), true);
  t.same(warnings, ['deprecated'], 'once, although it was read twice');
});

t.test('a deny rule matches as RE2 does, in every place', async (t) => {
  await loadRegularExpressions();
  const sub = { sub: 'admin', groups: ['admin'], nested: { sub: 'admin' } };
  for (const source of [
    String.raw`!claims.sub.matches("\\Aadmin\\z")`,
    String.raw`!claims.sub.matches(r"\Aadmin\z")`,
    String.raw`!matches(claims.sub, "\\Aadmin\\z")`,
    String.raw`!claims.nested.sub.matches("\\Aadmin\\z")`,
    String.raw`!claims.groups.exists(group, group.matches("\\Aadmin\\z"))`,
    String.raw`claims.groups.all(group, !group.matches("\\Aadmin\\z"))`,
    String.raw`claims.groups.filter(group, group.matches("\\Aadmin\\z")).size() == 0`,
    String.raw`claims.groups.map(group, group.matches("\\Aadmin\\z")) == [false]`,
    String.raw`has(claims.sub) && (claims.sub.matches("\\Aadmin\\z") ? false : true)`,
    String.raw`{"is": claims.sub.matches("\\Aadmin\\z")}["is"] == false`,
    String.raw`[!claims.sub.matches("\\Aadmin\\z")][0]`,
    String.raw`!claims[?"sub"].orValue("").matches("\\Aadmin\\z")`,
    String.raw`cel.bind(name, claims.sub, !name.matches("\\Aadmin\\z"))`,
  ])
    t.equal(compile(source, 'claims').evaluate(sub), false, source);
  const is = (pattern: string, text: string): boolean => compileRegularExpression(pattern).matches(text);
  t.ok(is('dmi', 'admin'), 'a part will do');
  t.ok(is('(?i)ADMIN', 'admin'));
  t.ok(is(String.raw`\pL+`, 'é') && !is(String.raw`\d`, '٣'), 'classes are of ASCII, but for \\p');
  t.ok(is('^.$', '😀'), 'a character is no half of one');
  t.notOk(is('^a$', 'a\nb'), 'lines do not count');
});

t.test('expressions that RE2 does not compile are refused when the file is read', async (t) => {
  await loadRegularExpressions();
  const problemOf = (source: string): string => {
    const refused: string[] = [];
    const section = { has: () => true, text: () => source, refuse: (...args: string[]) => refused.push(args[2] ?? '') };
    expression('rule', 'claims', 'bool').check(section as never);
    return refused.join();
  };
  for (const pattern of [
    '(?=a)',
    '(?!a)',
    '(?<=a)',
    '(a)\\1',
    'a{1001}',
    '(a{1000}){1000}',
    '(',
    'a**',
    '\\Z',
    '\\u0041',
  ])
    t.match(problemOf(`claims.sub.matches(r"${pattern}")`), /^error parsing regexp/, pattern);
  t.match(problemOf('"a".matches(7)'), /no matching overload/, 'no text');
  t.equal(problemOf('claims.sub.matches(r"^[a-z]+$") && claims.sub.matches(claims.pattern)'), '');
  t.throws(() => compile('claims.sub.matches("(")', 'claims'), /error parsing regexp/);
});

t.test('matching a regular expression takes time linear in the text', async (t) => {
  await loadRegularExpressions();
  for (const pattern of ['(a+)+$', '(a|a)*$', '(.*)*x', '(a|b|ab)*(bc|c)*$']) {
    const rule = compile(`claims.sub.matches("${pattern}")`, 'claims');
    // A backtracking engine takes years.
    const ms = await cpuTime(() => rule.evaluate({ sub: `${'a'.repeat(60)}!` }));
    t.ok(ms < 1000, `${pattern}: ${ms} ms`);
    const long = await cpuTime(() => rule.evaluate({ sub: `${'a'.repeat(16_000)}!` }));
    t.ok(long < 2000, `${pattern}: ${long} ms`);
  }
});

t.test('a pattern given by a client is bounded', async (t) => {
  await loadRegularExpressions();
  const given = compile('"text".matches(claims.pattern)', 'claims');
  const evaluate = (claims: object): unknown => given.evaluate(claims);
  t.equal(evaluate({ pattern: '^t.xt$' }), true);
  t.throws(() => evaluate({ pattern: '(' }), /error parsing regexp/);
  // Compiled, these take seconds.
  for (const pattern of ['(a|b|c){0,1000}'.repeat(17), 'a{1000,}'.repeat(100), '((a{10}){10}){10}', 'a'.repeat(2000)])
    t.throws(() => evaluate({ pattern }), /too large/, pattern.slice(0, 20));
  const heavy = compile(`claims.sub.matches("[ab]*a[ab]{500}[cd]")`, 'claims');
  t.equal(heavy.evaluate({ sub: 'ab'.repeat(500) }), false);
  t.throws(() => heavy.evaluate({ sub: 'ab'.repeat(8000) }), /too many steps/);
});
