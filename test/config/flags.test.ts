import t from 'tap';
import { FLAGS, parseCommandLine } from '../../src/config/flags.js';
import { failure } from './load-from.js';

t.test('spellings of flags', (t) => {
  const rows: readonly (readonly [readonly string[], Readonly<Record<string, unknown>>])[] = [
    [[], {}],
    [['--config', 'a'], { config: 'a' }],
    [['--config=a'], { config: 'a' }],
    [['--config='], { config: '' }],
    [['--config=a=b'], { config: 'a=b' }],
    [['--config', '--weird'], { config: '--weird' }],
    [['--config=a', '--config=b'], { config: 'b' }],
    [['--hostname_override=a'], { 'hostname-override': 'a' }],
    [['--write_config_to', 'a_b'], { 'write-config-to': 'a_b' }],
    [['--mode=ipvs'], { mode: 'ipvs' }],
    [['--proxy-mode=ipvs'], { mode: 'ipvs' }],
    [['--proxy_mode', 'ipvs'], { mode: 'ipvs' }],
    [['-v', '4'], { v: 4 }],
    [['-v=4'], { v: 4 }],
    [['-v4'], { v: 4 }],
    [['--v', '4'], { v: 4 }],
    [['--v=-1'], { v: -1 }],
    [['--cleanup'], { cleanup: true }],
    [['--cleanup=true'], { cleanup: true }],
    [['--cleanup=F'], { cleanup: false }],
    [['--cleanup=1'], { cleanup: true }],
    [['--version'], { version: 'true' }],
    [['--version=raw'], { version: 'raw' }],
    [['--manifests', 'a', '--manifests=b,c'], { manifests: ['a', 'b,c'] }],
    [['--manifests-header', 'A: b', '--manifests-header=C: d=e'], { 'manifests-header': ['A: b', 'C: d=e'] }],
    [['--', ''], {}],
  ];
  for (const [argv, given] of rows) t.same(Object.fromEntries(parseCommandLine(argv).given), given, argv.join(' '));
  t.end();
});

t.test('subcommands take the flags on either side', (t) => {
  for (const name of ['plan', 'render', 'dump'] as const) {
    for (const argv of [
      [name, '--config', 'a'],
      ['--config', 'a', name],
      ['--config=a', name],
    ]) {
      const line = parseCommandLine(argv);
      t.equal(line.subcommand, name, argv.join(' '));
      t.equal(line.given.get('config'), 'a');
    }
  }
  t.equal(parseCommandLine([]).subcommand, null);
  t.equal(parseCommandLine(['--config', 'plan']).subcommand, null, 'a value is no subcommand');
  t.equal(parseCommandLine(['--cleanup', 'plan']).subcommand, 'plan', 'a switch takes no separate value');
  t.end();
});

t.test('a wrong command line: message and usage', (t) => {
  const rows: readonly (readonly [readonly string[], string])[] = [
    [['start'], '"pointsman" does not take any arguments, got ["start"]'],
    [['start', 'now'], '"pointsman" does not take any arguments, got ["start","now"]'],
    [['plan', 'now'], '"pointsman" does not take any arguments, got ["now"]'],
    [['--cleanup', 'false'], '"pointsman" does not take any arguments, got ["false"]'],
    [['--', '--config=a'], '"pointsman" does not take any arguments, got ["--config=a"]'],
    [['--no-such-flag'], 'unknown flag: --no-such-flag'],
    [['--no_such=1'], 'unknown flag: --no-such=1'],
    [['-x'], 'unknown flag: -x'],
    [['-config'], 'unknown flag: -config'],
    [['--config'], 'flag needs an argument: --config'],
    [['-v'], 'flag needs an argument: --v'],
    [['-v=x'], '--v: Invalid value: "x": must be a 32-bit integer'],
    [['--v=1.5'], '--v: Invalid value: "1.5": must be a 32-bit integer'],
    [['--v=2147483648'], '--v: Invalid value: "2147483648": must be a 32-bit integer'],
    [['--cleanup=maybe'], '--cleanup: Invalid value: "maybe": must be true or false'],
  ];
  for (const [argv, message] of rows) {
    const error = failure(() => parseCommandLine(argv));
    t.equal(error.message, message, argv.join(' '));
    t.equal(error.code, 'CONFIG_USAGE');
    t.match(error.usage, /--manifests <source>/);
  }
  t.end();
});

t.test('help names every flag and command', (t) => {
  for (const argv of [['-h'], ['--help'], ['plan', '--help']]) {
    const { help } = parseCommandLine(argv);
    for (const { name } of FLAGS) t.match(help, `--${name} `, name);
    for (const name of ['plan', 'render', 'dump']) t.match(help, `  ${name} `);
  }
  t.end();
});

t.test('odd arguments never throw anything but a ConfigError', (t) => {
  const odd = [
    '',
    '-',
    '---',
    '=',
    '--=',
    '--=x',
    '-=',
    '-v=',
    '--v=',
    '-',
    '--config=\n',
    '--__proto__=1',
    '--constructor',
    '-é',
    '--version=',
  ];
  for (const argument of odd) {
    for (const argv of [[argument], [argument, 'x'], ['--config', argument]]) {
      try {
        parseCommandLine(argv);
      } catch (error) {
        t.equal((error as Error).name, 'ConfigError', JSON.stringify(argv));
      }
    }
  }
  t.end();
});
