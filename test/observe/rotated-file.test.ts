// Files of lines that are turned over.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { RotatedFile, type RotatedFileOptions } from '../../src/observe/rotated-file.js';

interface Scene {
  readonly directory: string;
  readonly path: string;
  readonly losses: unknown[];
  readonly options: RotatedFileOptions;
  readonly time: { now: number };
}

function scene(t: Test, more: Partial<RotatedFileOptions> = {}): Scene {
  const directory = mkdtempSync(join(tmpdir(), 'pointsman-rotated-'));
  t.teardown(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  const path = join(directory, 'audit.log');
  const losses: unknown[] = [];
  const time = { now: Date.UTC(2026, 0, 2, 3, 4, 5, 6) };
  const options = {
    path,
    maxBytes: 20,
    maxBackups: 0,
    maxAgeMs: 0,
    now: () => time.now,
    onLoss: (error: unknown) => losses.push(error),
    ...more,
  };
  return { directory, path, losses, options, time };
}

/** Each by a write of its own. */
async function write(options: RotatedFileOptions, ...lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    const file = await RotatedFile.open(options);
    file.write(line);
    await file.close();
  }
}

t.test('a rotated file: half a line of a killed process does not damage the next line', async (t) => {
  const { path, options } = scene(t, { maxBytes: 1000 });
  writeFileSync(path, 'whole\n{"half":');
  await write(options, 'next', 'last');
  t.equal(readFileSync(path, 'utf8'), 'whole\n{"half":\nnext\nlast\n');
});

t.test('a file is rotated by size, with the time in the name', async (t) => {
  const { directory, path, options, time } = scene(t);
  await write(options, 'a line of text', 'another');
  t.same(readdirSync(directory).sort(), ['audit-2026-01-02T03-04-05.006.log', 'audit.log']);
  t.equal(readFileSync(path, 'utf8'), 'another\n');
  t.equal(readFileSync(join(directory, 'audit-2026-01-02T03-04-05.006.log'), 'utf8'), 'a line of text\n');
  t.equal(statSync(path).mode & 0o777, 0o600);
  time.now += 1000;
  await write(options, 'longer than a whole file may be');
  t.equal(readdirSync(directory).length, 3, 'a line is never cut');
});

t.test('rotated files are limited by number and age', async (t) => {
  const { directory, options, time } = scene(t, { maxBackups: 2, maxAgeMs: 60_000 });
  writeFileSync(join(directory, 'audit-other.log'), '');
  const stamps = (): readonly string[] =>
    readdirSync(directory).flatMap((name) => /05-\d\d|\d\d\.\d{3}/.exec(name)?.[0] ?? []);
  for (let index = 0; index < 5; index++) {
    time.now += 1000;
    await write(options, 'x'.repeat(20));
  }
  t.same(stamps().length, 2);
  time.now += 120_000;
  await write(options, 'x'.repeat(20));
  t.same(stamps().length, 1, 'the one just made');
  t.ok(readdirSync(directory).includes('audit-other.log'), 'a foreign file');
});

t.test('a rotated file that was moved is left; a failed write loses only its own lines', async (t) => {
  const { directory, path, losses, options } = scene(t, { maxBytes: 1000 });
  const file = await RotatedFile.open(options);
  t.ok(file.write('one'));
  await file.close();
  const again = await RotatedFile.open(options);
  renameSync(path, join(directory, 'moved'));
  again.write('two');
  await again.close();
  t.same([readFileSync(join(directory, 'moved'), 'utf8'), readFileSync(path, 'utf8')], ['one\n', 'two\n']);
  const third = await RotatedFile.open(options);
  rmSync(path);
  writeFileSync(join(directory, 'x'), '');
  renameSync(join(directory, 'x'), path);
  chmodSync(path, 0o600);
  third.write('three');
  await third.close();
  t.equal(readFileSync(path, 'utf8'), 'three\n');
  t.same(losses, []);
});

t.test(
  'a file that cannot be opened is tried again with each line; a path that can be no file is refused',
  async (t) => {
    const counted: string[] = [];
    const { directory, losses, options } = scene(t, {
      onLines: (outcome, count) => counted.push(`${count} ${outcome}`),
    });
    const path = join(directory, 'a', 'b', 'audit.log');
    const file = await RotatedFile.open({ ...options, path });
    t.match(file.fault, /^ENOENT/, 'its directory is missing');
    file.write('lost');
    await file.close();
    mkdirSync(join(directory, 'a'));
    file.write('written');
    await file.close();
    t.equal(file.fault, null);
    t.equal(readFileSync(path, 'utf8'), 'written\n');
    t.same([losses.length, counted], [1, ['1 lost', '1 written']]);
    for (const invalid of [directory, join(path, 'c'), join(directory, 'x'.repeat(300))])
      await t.rejects(RotatedFile.open({ ...options, path: invalid }), /: cannot be written to: /, invalid);
  },
);

t.test('lines that are written while the file is opened are kept', async (t) => {
  const { path, options } = scene(t);
  const file = new RotatedFile(options);
  const opening = file.prepare();
  file.write('early');
  await opening;
  await file.close();
  t.equal(readFileSync(path, 'utf8'), 'early\n');
});

t.test('a slow disk blocks no writer, and memory stays bounded', async (t) => {
  const { path, losses, options } = scene(t, { maxBytes: 1 << 30 });
  const file = await RotatedFile.open(options);
  const line = 'x'.repeat(1 << 20);
  const taken = Array.from({ length: 12 }, () => file.write(line)).filter((each) => each).length;
  t.equal(taken, 7);
  t.match(losses, [/too slow/]);
  await file.close();
  t.equal(statSync(path).size, taken * (line.length + 1));
  t.equal(readFileSync(path, 'latin1').split('\n').length, taken + 1);
});

t.test('lines are counted as written once they are on disk, and as lost otherwise', async (t) => {
  const counted: string[] = [];
  const { directory, options } = scene(t, { onLines: (outcome, count) => counted.push(`${count} ${outcome}`) });
  const file = await RotatedFile.open(options);
  t.ok(file.write('a') && file.write('b'));
  await file.close();
  rmSync(directory, { recursive: true });
  writeFileSync(directory, 'no directory');
  const other = file.write('c');
  t.ok(other);
  await file.close();
  t.same(counted, ['2 written', '1 lost']);
});

t.test('a client that writes too much leaves room for lines of others', async (t) => {
  const { path, losses, options } = scene(t, { maxBytes: 1 << 30 });
  const file = await RotatedFile.open(options);
  const line = 'x'.repeat(1 << 18);
  const takenOf = (client: string, count: number): number =>
    Array.from({ length: count }, () => file.write(line, client)).filter((each) => each).length;
  const flooder = takenOf('flooder', 100);
  t.ok(flooder >= 14 && flooder <= 16, `half of 32: ${flooder}`);
  t.equal(takenOf('other', 5), 5);
  const second = takenOf('second flooder', 100);
  t.ok(second >= 4 && second < 8, `half of what is left: ${second}`);
  t.equal(takenOf('another', 1), 1, 'there is room after two of them');
  t.equal(losses.length, 1);
  await file.close();
  t.equal(statSync(path).size, (flooder + 5 + second + 1) * (line.length + 1));
  t.equal(takenOf('flooder', 1), 1, 'what is written takes no room');
  await file.close();
});

t.test('a caller that waits for a line gets its result', async (t) => {
  const { directory, options } = scene(t);
  const file = await RotatedFile.open(options);
  const outcome = (line: string): Promise<unknown> =>
    new Promise((resolve) => {
      file.write(line, null, resolve);
    });
  t.equal(await outcome('a'), null);
  t.match(await outcome('x'.repeat(9 << 20)), /too slow/);
  rmSync(directory, { recursive: true });
  writeFileSync(directory, 'no directory');
  t.match(await outcome('b'), { code: 'ENOTDIR' });
  await file.close();
});

/** A process whose standard output is a full pipe that does not block, and which writes to it in two parts. */
function printing(t: Test, mode: 'wait' | 'close'): ChildProcessByStdio<null, Readable, Readable> {
  const module = new URL('../../src/observe/rotated-file.js', import.meta.url).href;
  const program = `
    import { RotatedFile } from '${module}';
    process.stdout; // Makes the pipe non-blocking, as Node.js does with those that it writes to.
    const counts = { written: 0, lost: 0 };
    const file = await RotatedFile.open({
      path: '-', maxBytes: 1, maxBackups: 0, maxAgeMs: 0, now: Date.now, onLoss: () => {},
      onLines: (outcome, count) => { counts[outcome] += count; },
    });
    file.write('a'.repeat(4 << 20));
    setTimeout(async () => {
      file.write('b'.repeat(1 << 20));
      console.error('queued');
      if (process.argv[1] === 'wait') while (counts.written + counts.lost < 2) await new Promise((r) => setTimeout(r, 1));
      const begun = performance.now();
      await file.close();
      console.error(JSON.stringify({ ...counts, ms: performance.now() - begun }));
      process.exit();
    }, 100);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, mode], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

t.test('a writer waits for a full pipe', async (t) => {
  const child = printing(t, 'wait');
  const reported = child.stderr.setEncoding('utf8')[Symbol.asyncIterator]();
  t.match((await reported.next()).value, 'queued');
  const [printed, last] = await Promise.all([buffer(child.stdout), reported.next()]);
  t.equal(printed.length, (5 << 20) + 2);
  t.match(last.value, '"written":2,"lost":0');
});

t.test('close() does not wait for a stuck reader', async (t) => {
  const child = printing(t, 'close');
  const reported = (await text(child.stderr)).split('\n');
  const { written, lost, ms } = JSON.parse(reported[1] ?? '') as Readonly<Record<string, number>>;
  t.same([written, lost], [0, 2]);
  // Two parts that each wait as long as an open file would make it ten seconds.
  t.ok((ms ?? Infinity) < 5000, `${ms} ms`);
});
