import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';
import { eventually } from '../support/lab/lab.js';

const { sysctl } = loadAddon();
const PERIOD_MS = 5;

t.test('sysctlWatch() calls back once, for a changed file', async (t) => {
  const path = join(t.testdir({ value: '60\n' }), 'value');
  let calls = 0;
  const stop = sysctl.sysctlWatch([{ path, text: '60' }], PERIOD_MS, () => calls++);
  await sleep(20 * PERIOD_MS);
  t.equal(calls, 0);
  writeFileSync(path, '61\n');
  await eventually('a call', () => Promise.resolve(calls || null));
  writeFileSync(path, '62\n');
  await sleep(20 * PERIOD_MS);
  t.equal(calls, 1);
  stop();
  stop();
});

t.test('sysctlWatch() calls back when a file is deleted, and when one appears', async (t) => {
  const path = join(t.testdir({ value: '60\n' }), 'value');
  const changed = async (text: string | null, change: () => void): Promise<void> => {
    let called = false;
    const stop = sysctl.sysctlWatch([{ path, text }], PERIOD_MS, () => (called = true));
    change();
    // The watch does not keep the process alive.
    await eventually('a call', () => Promise.resolve(called || null));
    stop();
  };
  await changed('60', () => {
    rmSync(path);
  });
  await changed(null, () => {
    writeFileSync(path, '60\n');
  });
  t.pass('both did');
});

t.test('sysctlWatch() ends when it is stopped, and with its worker thread', async (t) => {
  const path = join(t.testdir({ value: '60\n' }), 'value');
  sysctl.sysctlWatch([{ path, text: '7' }], 60_000, () => t.fail('was called'))();
  const load = new URL('../../src/native/load.js', import.meta.url).href;
  const program = `
    const { loadAddon } = await import(${JSON.stringify(load)});
    loadAddon().sysctl.sysctlWatch([{ path: ${JSON.stringify(path)}, text: '60' }], 60_000, () => undefined);`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
  t.same(await once(worker, 'exit'), [0]);
});

t.test('sysctlWatch() with wrong arguments is an error that names them', (t) => {
  const call = (...args: readonly unknown[]): unknown =>
    Reflect.apply(Reflect.get(sysctl, 'sysctlWatch') as () => unknown, undefined, args);
  const nothing = (): void => undefined;
  t.throws(() => call('x', 5, nothing), /files/);
  t.throws(() => call([{ path: '', text: null }], 5, nothing), /files\[0\]\.path/);
  t.throws(() => call([{ path: '/x', text: 6 }], 5, nothing), /files\[0\]\.text/);
  t.throws(() => call([], 0, nothing), /periodMs/);
  t.throws(() => call([], 5, 'x'), /onChange/);
  t.end();
});
