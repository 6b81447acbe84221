import { matchesGlob } from '../../src/observe/glob.js';
import { createRequire } from 'node:module';
import t from 'tap';
import { parseFrame, printCaller } from '../../src/observe/caller.js';
import { createLogger, type Logger, type LogOutput } from '../../src/observe/log.js';
import type { LoggingConfig } from '../../src/config/config.js';

/** 2026-11-20 11:04:05.123456 in local time. */
const NOW = new Date(2026, 10, 20, 11, 4, 5, 123).getTime() + 0.456;
const PID = String(process.pid).padStart(7);

async function logger(config: Partial<LoggingConfig>): Promise<{ log: Logger; lines: string[] }> {
  const lines: string[] = [];
  const output: LogOutput = { write: (line) => lines.push(line), now: () => NOW, flush: () => undefined };
  const defaults: LoggingConfig = {
    format: 'text',
    verbosity: 0,
    vmodule: [],
    splitStream: false,
    infoBufferSize: 0,
    flushFrequency: 5000,
  };
  return { log: await createLogger({ ...defaults, ...config }, () => output), lines };
}

t.test('stack frames are parsed on either platform', (t) => {
  const place = (path: string) => ({ path, extension: '.js', line: '12', column: '34' });
  const rows = [
    ['    at Cycle.run (/opt/pointsman/dist/pointsman.js:12:34)', '/opt/pointsman/dist/pointsman'],
    ['    at file:///opt/pointsman/dist/main.js:12:34', '/opt/pointsman/dist/main'],
    ['    at Cycle.run (C:\\pointsman dir\\dist\\pointsman.js:12:34)', 'C:\\pointsman dir\\dist\\pointsman'],
    ['    at async file:///C:/pointsman/dist/main.js:12:34', 'C:/pointsman/dist/main'],
  ] as const;
  for (const [frame, path] of rows) t.same(parseFrame(frame), place(path), frame);
  for (const [, path] of rows) t.match(printCaller(place(path)), /^(?:pointsman|main)\.js:12$/);
  t.equal(parseFrame('    at new Promise (<anonymous>)'), null);
  t.end();
});

t.test('the text log has the format of klog', async (t) => {
  const { log, lines } = await logger({});
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  log.info(0, 'Synced "all"', {
    family: 'IPv4',
    operations: 3,
    complete: true,
    list: ['a', 1],
    nested: { a: 1n },
    nothing: null,
    absent: undefined,
  });
  log.warn('two\nlines');
  log.error(new Error('boom', { cause: new Error('EPERM') }), 'Could not sync', { other: new TypeError('x') });
  log.error('text', 'Odd');
  log.error(null, 'Bare');
  log.info(0, 'Cycle', { cycle });
  const expected = [
    'I 1 "Synced \\"all\\"" family="IPv4" operations=3 complete=true list=["a",1] nested={"a":"1"} nothing=null absent="undefined"',
    'W 2 "two\\nlines"',
    'E 3 "Could not sync" err="boom: EPERM" other="x"',
    'E 4 "Odd" err="text"',
    'E 5 "Bare"',
  ];
  const head = new RegExp(`^([IWE])1120 11:04:05\\.12345[56] ${PID} log\\.test\\.js:(\\d+)\\] (.*)\n$`);
  const shown = lines.map((line) => head.exec(line) ?? []);
  const first = Number(shown[0]?.[2]);
  t.same(
    shown
      .slice(0, 5)
      .map(([, severity, line, text], index) => `${severity} ${Number(line) > first - 1 ? index + 1 : 0} ${text}`),
    expected,
  );
  t.match(lines[5], /"Cycle" cycle="unprintable: /);
  t.ok(
    lines.every((line) => line.indexOf('\n') === line.length - 1),
    'one line each',
  );
});

t.test('a log line names the line of code that logged', async (t) => {
  const { log, lines } = await logger({});
  log.info(0, 'a');
  log.info(0, 'b');
  const at = lines.map((line) => Number(/:(\d+)\]/.exec(line)?.[1]));
  t.equal(at[1]! - at[0]!, 1);
  const here = Number(/log\.test\.js:(\d+)/.exec(new Error().stack ?? '')?.[1]);
  t.equal(here - at[1]!, 3);
  t.equal(Error.stackTraceLimit > 1, true, 'the limit is restored');
});

t.test('--v is the threshold of verbosity', async (t) => {
  const { log, lines } = await logger({ verbosity: 2 });
  for (const level of [0, 2, 3, 10]) {
    log.info(level, `level ${level}`);
    t.equal(log.enabled(level), level <= 2);
  }
  log.warn('always');
  log.error(null, 'always');
  t.same(
    lines.map((line) => / "(.*)"\n$/.exec(line)?.[1]),
    ['level 0', 'level 2', 'always', 'always'],
  );
});

t.test('--vmodule patterns match source files', (t) => {
  const path = '/srv/pointsman/dist/observe/log';
  const matching = ['log', 'l*g', '*', '**', '?og', '/srv/*/log', '*observe/lo?', '/srv/*/*/observe/log*', '*/log'];
  const others = ['lo', 'og', 'l?', 'logs', 'observe', '/srv/pointsman', 'dist/*/log', '', '*a', '/srv/?/log', '[l]og'];
  for (const pattern of matching) t.ok(matchesGlob(path, pattern), pattern);
  for (const pattern of others) t.notOk(matchesGlob(path, pattern), pattern);
  // Would try every way of dividing the text among the stars.
  t.notOk(matchesGlob('a'.repeat(1000), `${'*a'.repeat(500)}*b`));
  t.end();
});

t.test('--vmodule sets thresholds by source file', async (t) => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['log.test', true],
    ['log*', true],
    ['l?g.test', true],
    ['*', true],
    ['*/observe/log.test', true],
    ['observe/log.test', false],
    ['log', false],
    ['logXtest', false],
    ['og.test', false],
    ['log.test.js', false],
    ['(', false],
  ];
  for (const [filePattern, matches] of rows) {
    const { log, lines } = await logger({ vmodule: [{ filePattern, verbosity: 4 }] });
    t.equal(log.enabled(4), matches, filePattern);
    log.info(4, 'detail');
    log.info(5, 'too much');
    t.equal(lines.length, matches ? 1 : 0, filePattern);
  }
  const quiet = await logger({
    verbosity: 9,
    vmodule: [
      { filePattern: 'log.test', verbosity: 1 },
      { filePattern: '*', verbosity: 9 },
    ],
  });
  quiet.log.info(2, 'hidden');
  t.same(quiet.lines, [], 'the first match wins, and may lower the threshold');
});

t.test('pino is loaded only for the JSON log', async (t) => {
  const { cache } = createRequire(import.meta.url);
  const isLoaded = (): boolean => Object.keys(cache).some((path) => path.includes('/node_modules/pino/'));
  await logger({});
  t.equal(isLoaded(), false);
  await logger({ format: 'json' });
  t.equal(isLoaded(), true);
});

t.test('the JSON log has the shape of Kubernetes JSON logs', async (t) => {
  const { log, lines } = await logger({ format: 'json', verbosity: 3 });
  log.info(3, 'Synced', { family: 'IPv4', list: [1], big: 5n });
  log.info(4, 'hidden');
  log.warn('careful');
  log.error(new Error('boom'), 'Failed', { msg: 'taken', ts: 1, item: 'x' });
  log.error(null, 'Bare');
  const ts = Number(NOW.toFixed(3));
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const entry of entries) t.match(entry['caller'], /^log\.test\.js:\d+$/);
  t.strictSame(
    entries.map((entry) => Object.fromEntries(Object.entries(entry).filter(([key]) => key !== 'caller'))),
    [
      { ts, v: 3, msg: 'Synced', family: 'IPv4', list: [1], big: '5' },
      { ts, v: 0, msg: 'careful' },
      { ts, msg: 'Failed', err: 'boom', msg_: 'taken', ts_: 1, item: 'x' },
      { ts, msg: 'Bare' },
    ],
  );
  t.ok(lines.every((line) => line.endsWith('}\n') && line.split('"msg":').length === 2));
});

t.test('control characters in logged texts do not reach the terminal', async (t) => {
  for (const format of ['text', 'json'] as const) {
    const { log, lines } = await logger({ format });
    log.error(new Error('\u001b]0;title\u0007 \u009b31m'), 'bad \u202e text', { ['\u0085key']: '\u007f\u2028' });
    t.notMatch(lines.join(''), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u202e]/, format);
    t.match(lines[0], /\\u009b31m/, format);
  }
});
