import t from 'tap';
import { FLAGS } from '../../src/config/flag-table.js';
import { adviceOn, commandOf, parseCommand } from '../../src/commands/command-line.js';
import { flagSettings, parseCommandLine, type ParsedWords } from '../../src/config/flags.js';
import { failure } from './load-from.js';

t.test('flags are accepted in every spelling of pflag', (t) => {
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
    [['--proxy-mode=ipvs'], { 'proxy-mode': 'ipvs' }],
    [['--proxy_mode', 'ipvs'], { 'proxy-mode': 'ipvs' }],
    [['-v', '4'], { v: 4 }],
    [['-v=4'], { v: 4 }],
    [['-v4'], { v: 4 }],
    [['--v', '4'], { v: 4 }],
    [['--v=-1'], { v: -1 }],
    [['--cleanup'], { cleanup: true }],
    [['--cleanup=true'], { cleanup: true }],
    [['--cleanup=F'], { cleanup: false }],
    [['--cleanup=1'], { cleanup: true }],
    [['--cleanup=TRUE', '--cleanup=0'], { cleanup: false }],
    [['--profiling', '--init_only=false'], { profiling: true, 'init-only': false }],
    [['--oom-score-adj=0x1F'], { 'oom-score-adj': 31 }],
    [['--oom-score-adj=017'], { 'oom-score-adj': 15 }],
    [['--oom-score-adj', '-0b11'], { 'oom-score-adj': -3 }],
    [['--oom-score-adj=+5'], { 'oom-score-adj': 5 }],
    [['--kube-api-qps=.5'], { 'kube-api-qps': 0.5 }],
    [['--kube-api-qps=-1e1'], { 'kube-api-qps': -10 }],
    [['--kube-api-qps=1e-400'], { 'kube-api-qps': 0 }],
    [['--kube-api-qps=3.4e38'], { 'kube-api-qps': 3.4e38 }],
    [['--conntrack-udp-timeout=1h2m3s'], { 'conntrack-udp-timeout': '1h2m3s' }],
    [['--conntrack-udp-timeout=90s'], { 'conntrack-udp-timeout': '1m30s' }],
    [['--conntrack-udp-timeout=0'], { 'conntrack-udp-timeout': '0s' }],
    [['--nodeport-addresses=a,b', '--nodeport-addresses=c'], { 'nodeport-addresses': ['a', 'b', 'c'] }],
    [['--nodeport-addresses='], { 'nodeport-addresses': [] }],
    [['--feature-gates=A=true, B=F,', '--feature-gates=A=0'], { 'feature-gates': ['A=true', 'B=false', 'A=false'] }],
    [['--vmodule=plan*=4,sync=0', '--vmodule='], { vmodule: ['plan*=4', 'sync=0'] }],
    [['--bind-address='], { 'bind-address': '' }],
    [['--bind-address=010.0.0.1'], { 'bind-address': '010.0.0.1' }],
    [['--healthz-bind-address=::1'], { 'healthz-bind-address': '::1' }],
    [['--healthz-bind-address=[::1]:80'], { 'healthz-bind-address': '[::1]:80' }],
    [['--log-text-info-buffer-size=64Ki'], { 'log-text-info-buffer-size': '64Ki' }],
    [['--version'], { version: 'true' }],
    [['--version=raw'], { version: 'raw' }],
    [['--manifests', 'a', '--manifests=b,c'], { manifests: ['a', 'b,c'] }],
    [['--manifests-header', 'A: b', '--manifests-header=C: d=e'], { 'manifests-header': ['A: b', 'C: d=e'] }],
    [['--', ''], {}],
  ];
  for (const [argv, given] of rows) t.same(Object.fromEntries(parseCommandLine(argv).given), given, argv.join(' '));
  t.end();
});

function parse(argv: readonly string[]): ParsedWords & { readonly subcommand: string | null } {
  const command = commandOf(argv);
  if (command === null || command.needs === null) return { ...parseCommandLine(argv), operands: [], subcommand: null };
  return { ...parseCommand(command, argv), subcommand: command.name };
}

t.test('subcommands take flags before and after their name', (t) => {
  for (const name of ['plan', 'render', 'dump', 'diff'] as const) {
    for (const argv of [
      [name, '--config', 'a'],
      ['--config', 'a', name],
      ['--config=a', name],
    ]) {
      const line = parse(argv);
      t.equal(line.subcommand, name, argv.join(' '));
      t.equal(line.given.get('config'), 'a');
    }
  }
  t.same(parse(['--from', 'node', 'explain', '10.0.0.1:80']).operands, ['10.0.0.1:80']);
  t.equal(parse([]).subcommand, null);
  t.equal(parse(['--config', 'plan']).subcommand, null, 'a value is no subcommand');
  t.equal(parse(['--profiling', 'plan']).subcommand, 'plan', 'a switch takes no separate value');
  t.match(Object.fromEntries(parse(['status', '-wo', 'yaml']).given), { watch: true, output: 'yaml' });
  t.match(Object.fromEntries(parse(['-wo=json', 'status']).given), { watch: true, output: 'json' });
  t.end();
});

t.test('wrong command lines give a message and the usage', (t) => {
  const rows: readonly (readonly [readonly string[], string])[] = [
    [['start'], '"pointsman" does not take any arguments, got ["start"]'],
    [['start', 'now'], '"pointsman" does not take any arguments, got ["start","now"]'],
    [['statsu'], '"pointsman" does not take any arguments, got ["statsu"]; Did you mean `pointsman status`?'],
    [['plan', 'now'], 'plan does not take any arguments, got ["now"]'],
    [['status', 'now'], 'status does not take any arguments, got ["now"]'],
    // A forgotten command starts no proxy, and a flag that a command does not have is not passed over.
    [
      ['--watch', '--manifests', 'm'],
      'unknown flag: --watch; It is a flag of `pointsman status`, `pointsman services`, `pointsman explain`.',
    ],
    [
      ['-o', 'json'],
      'unknown flag: -o; It is a flag of `pointsman status`, `pointsman services`, `pointsman explain`, `pointsman trace`, `pointsman selftest`, `pointsman top`, `pointsman diff`, `pointsman plan`, `pointsman dump`.',
    ],
    [
      ['--from=node', '--manifests', 'm'],
      'unknown flag: --from; It is a flag of `pointsman explain`, `pointsman trace`.',
    ],
    [['status', '--node', 'b'], 'unknown flag: --node; It is a flag of `pointsman explain`, `pointsman bugreport`.'],
    [
      ['render', '-o', 'json'],
      'unknown flag: -o; It is a flag of `pointsman status`, `pointsman services`, `pointsman explain`, `pointsman trace`, `pointsman selftest`, `pointsman top`, `pointsman diff`, `pointsman plan`, `pointsman dump`.',
    ],
    [['--cleanup', 'plan'], 'unknown flag: --cleanup; It is a flag of the proxy itself.'],
    [['status', '--config=a'], 'unknown flag: --config; It is a flag of the proxy itself.'],
    [['status', '--wach'], 'unknown flag: --wach; Did you mean --watch?'],
    [['--manifest=a'], 'unknown flag: --manifest; Did you mean --manifests?'],
    [['explain'], 'explain needs an argument: address:port/protocol, or a Service'],
    [['explain', 'a', 'b'], 'explain takes one argument, got ["b"] as well'],
    [['--cleanup', 'false'], '"pointsman" does not take any arguments, got ["false"]'],
    [['--', '--config=a'], '"pointsman" does not take any arguments, got ["--config=a"]'],
    [['--no-such-flag'], 'unknown flag: --no-such-flag'],
    [['--no_such=1'], 'unknown flag: --no-such'],
    [['-x'], 'unknown flag: -x'],
    [['-config'], 'unknown flag: -config'],
    [['--config'], 'flag needs an argument: --config'],
    [['-v'], 'flag needs an argument: --v'],
    [['-v=x'], '--v: Invalid value: "x": must be a 32-bit integer'],
    [['--v=1.5'], '--v: Invalid value: "1.5": must be a 32-bit integer'],
    [['--v=2147483648'], '--v: Invalid value: "2147483648": must be a 32-bit integer'],
    [['--cleanup=maybe'], '--cleanup: Invalid value: "maybe": must be true or false'],
    [['--v=09'], '--v: Invalid value: "09": must be a 32-bit integer'],
    [['--v=0x'], '--v: Invalid value: "0x": must be a 32-bit integer'],
    [['--v=0x80000000'], '--v: Invalid value: "0x80000000": must be a 32-bit integer'],
    [['--v='], '--v: Invalid value: "": must be a 32-bit integer'],
    [['--kube-api-qps=fast'], '--kube-api-qps: Invalid value: "fast": must be a number'],
    [['--kube-api-qps=1e39'], '--kube-api-qps: Invalid value: "1e39": must be a number of 32 bits'],
    [['--kube-api-qps=-1e400'], '--kube-api-qps: Invalid value: "-1e400": must be a number of 32 bits'],
    [['--kube-api-qps=Inf'], '--kube-api-qps: Invalid value: "Inf": must be a number'],
    [
      ['--config-sync-period=15'],
      '--config-sync-period: Invalid value: "15": must be a duration such as "30s", "1h5m" or "500ms"',
    ],
    [['--bind-address=[::]'], '--bind-address: Invalid value: "[::]": must be an IP address'],
    [
      ['--metrics-bind-address=localhost:1'],
      '--metrics-bind-address: Invalid value: "localhost:1": must be an IP address or IP:port',
    ],
    [['--feature-gates=A'], '--feature-gates: Invalid value: "A": must be Name=true or Name=false pairs'],
    [['--feature-gates=A=yes'], '--feature-gates: Invalid value: "A=yes": must be Name=true or Name=false pairs'],
    [['--feature-gates==true'], '--feature-gates: Invalid value: "=true": must be Name=true or Name=false pairs'],
    [['--vmodule=a=-1'], '--vmodule: Invalid value: "a=-1": must be pattern=N pairs'],
    [['--vmodule=a=1=2'], '--vmodule: Invalid value: "a=1=2": must be pattern=N pairs'],
    [['--vmodule=a=2147483648'], '--vmodule: Invalid value: "a=2147483648": must be pattern=N pairs'],
    [
      ['--log-json-info-buffer-size=lots'],
      '--log-json-info-buffer-size: Invalid value: "lots": must be a quantity such as "64Ki"',
    ],
    [['--v=x', '--v=1'], '--v: Invalid value: "x": must be a 32-bit integer'],
  ];
  for (const [argv, message] of rows) {
    const error = failure(() => parse(argv));
    const [problem, advice = null] = message.split('; ');
    t.equal(error.message, problem, argv.join(' '));
    t.equal(adviceOn(error), advice, argv.join(' '));
    t.equal(error.code, 'CONFIG_USAGE');
    t.equal(error.usage, commandOf(argv)?.name ?? 'pointsman');
  }
  t.end();
});

t.test('--help works with any command, and needs no other argument', (t) => {
  for (const argv of [['-h'], ['--help'], ['--config', 'a', '-h']])
    t.match(parse(argv), { help: true, subcommand: null }, argv.join(' '));
  for (const argv of [
    ['plan', '--help'],
    ['explain', '-h'],
  ])
    t.match(parse(argv), { help: true, subcommand: argv[0] }, argv.join(' '));
  t.end();
});

t.test('every flag is printed with its effective value, as Kubernetes does, without credentials', (t) => {
  const settings = (argv: readonly string[]): ReadonlyMap<string, string> =>
    new Map(flagSettings(parseCommandLine(argv)).map(({ name, value }) => [name, value]));
  const none = settings([]);
  t.same([...none.keys()], [...none.keys()].sort(), 'sorted');
  t.equal(none.size, FLAGS.length);
  const given = settings([
    '--proxy-mode=nftables',
    '--v=4',
    '--profiling',
    '--conntrack-udp-timeout=90s',
    '--nodeport-addresses=10.0.0.0/8,primary',
    '--feature-gates=A=T,B=0',
    '--kube-api-qps=0.5',
    '--manifests=a',
    '--manifests-header=Authorization: Bearer secret',
  ]);
  const changed = [...given].filter(([name, value]) => none.get(name) !== value);
  t.same(Object.fromEntries(changed), {
    'proxy-mode': 'nftables',
    v: '4',
    profiling: 'true',
    'conntrack-udp-timeout': '1m30s',
    'nodeport-addresses': '[10.0.0.0/8,primary]',
    'feature-gates': 'A=true,B=false',
    'kube-api-qps': '0.5',
    manifests: '[a]',
    'manifests-header': '[REDACTED]',
  });
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
