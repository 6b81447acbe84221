import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import t from 'tap';
import { hasStandardError, LogFile, logFilePath } from '../../src/host/windows/log-file.js';

t.test('the log file has lines at once, and an older file is kept', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-log-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const path = join(folder, 'logs', 'a.log');
  const read = (): readonly string[] => [path, `${path}.1`].map((each) => readFileSync(each, 'utf8'));
  new LogFile(path, 10).write('12345\n');
  const next = new LogFile(path, 10);
  next.write('678\n');
  t.equal(readFileSync(path, 'utf8'), '12345\n678\n', 'another process goes on');
  next.write('a line longer than a file may be\n');
  t.strictSame(read(), ['a line longer than a file may be\n', '12345\n678\n']);
  next.write('x\n');
  t.strictSame(read(), ['x\n', 'a line longer than a file may be\n']);
  new LogFile(join(path, 'no folder')).write('lost\n');
  t.end();
});

t.test('the log file is used without standard error, in ProgramData', (t) => {
  t.equal(logFilePath({ ProgramData: '/data' }), '/data/pointsman/pointsman.log');
  t.ok(hasStandardError());
  t.notOk(hasStandardError(new Writable()));
  t.end();
});
