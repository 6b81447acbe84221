import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { LoggingConfig } from '../../src/config/config.js';
import { createLogger, type Logger } from '../../src/observe/log.js';
import { logStreams, type TextStream } from '../../src/observe/log-streams.js';

const DEFAULTS: LoggingConfig = {
  format: 'text',
  verbosity: 0,
  vmodule: [],
  splitStream: false,
  infoBufferSize: 0,
  flushFrequency: 5000,
};

function stream(): TextStream & { readonly writes: string[] } {
  const writes: string[] = [];
  return { writes, write: (text) => writes.push(text), on: () => undefined };
}

async function logger(
  config: Partial<LoggingConfig>,
): Promise<{ log: Logger; out: readonly string[]; err: readonly string[] }> {
  const [out, err] = [stream(), stream()];
  const all = { ...DEFAULTS, ...config };
  return { log: await createLogger(all, (config) => logStreams(config, out, err)), out: out.writes, err: err.writes };
}

for (const format of ['text', 'json'] as const) {
  t.test(`${format}: the log goes to one stream, or to two`, async (t) => {
    const one = await logger({ format });
    one.log.info(0, 'message');
    one.log.error(null, 'failure');
    t.same(one.out, []);
    t.equal(one.err.length, 2);

    const two = await logger({ format, splitStream: true });
    two.log.info(0, 'message');
    two.log.warn('warning');
    two.log.error(new Error('x'), 'failure');
    t.match(two.out.join(''), /message[^]*warning/);
    t.equal(two.out.length, 2);
    t.equal(two.err.length, 1);
    t.match(two.err[0], 'failure');
  });
}

t.test('changed log format, streams and thresholds apply from the next line, and nothing is lost', async (t) => {
  const { log, out, err } = await logger({ splitStream: true, infoBufferSize: 10_000 });
  log.info(0, 'gathered');
  log.info(2, 'not yet');
  t.same(out, []);
  const begin = await log.prepare({ ...DEFAULTS, format: 'json', verbosity: 2, splitStream: true });
  t.same(out, [], 'not before the change');
  begin();
  t.match(out, [/^I.* "gathered"\n$/], 'what was gathered is written first');
  log.info(2, 'detail');
  log.error(null, 'failure');
  t.match([out[1], err[0]], [/^\{.*"msg":"detail".*\n$/, /^\{.*"msg":"failure".*\n$/]);
  (await log.prepare(DEFAULTS))();
  log.info(0, 'last');
  t.match([out.length, err[1]], [2, /^I.* "last"\n$/]);
});

t.test('log messages are buffered up to a size or a time, and errors are not', async (t) => {
  const { log, out, err } = await logger({ splitStream: true, infoBufferSize: 300, flushFrequency: 100 });
  log.info(0, 'first');
  log.error(null, 'failure');
  t.same(out, []);
  t.equal(err.length, 1);
  log.info(0, 'x'.repeat(300));
  t.equal(out.length, 1, 'full');
  t.match(out[0], /first[^]*xxx/);
  log.info(0, 'later');
  t.equal(out.length, 1);
  const keepAlive = setInterval(() => undefined, 10);
  await delay(250);
  clearInterval(keepAlive);
  t.equal(out.length, 2, 'waited long enough');
  t.match(out[1], 'later');
  await delay(150);
  t.equal(out.length, 2, 'nothing to write');
});

t.test('buffered log lines are written when the process exits', (t) => {
  const script = `
    import { createLogger } from './src/observe/log.js';
    import { logStreams } from './src/observe/log-streams.js';
    const config = ${JSON.stringify({ ...DEFAULTS, splitStream: true, infoBufferSize: 1 << 20, flushFrequency: 1e12 })};
    const log = await createLogger(config, logStreams);
    log.info(0, 'last words');
    process.exit(3);`;
  const root = new URL('../..', import.meta.url);
  try {
    execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      stdio: 'pipe',
      encoding: 'utf8',
    });
    t.fail('exit status');
  } catch (error) {
    t.match(error, { status: 3, stdout: /last words/ });
  }
  t.end();
});
