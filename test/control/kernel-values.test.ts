import t from 'tap';
import { KernelValues } from '../../src/control/kernel-values.js';
import type { SeenFile } from '../../src/base/sysctl.js';
import type { KernelValue } from '../../src/host/host.js';
import { applyKernelValues, type KernelFiles } from '../../src/host/linux/sysctl.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

const PATH = '/proc/sys/net/netfilter/nf_conntrack_udp_timeout';
const WANTED: readonly KernelValue[] = [{ path: PATH, value: 30, match: 'equal' }];

/** The configuration asks for this, for another value, or for nothing. */
type Wish = number | KernelValue | null;

function setup(content: string | null): {
  readonly values: KernelValues;
  readonly clock: FakeClock;
  readonly file: { content: string | null; readOnly: boolean; reads: number };
  readonly repaired: string[];
  readonly problems: () => readonly string[];
  readonly log: RecordingLog;
  /** With what the kernel's files were watched, each time. */
  readonly watched: readonly (readonly SeenFile[])[];
  readonly wish: (value: Wish) => Promise<void>;
} {
  const file = { content, readOnly: false, reads: 0 };
  const files: KernelFiles = {
    read: () => {
      file.reads++;
      if (file.content === null) throw refusal('ENOENT');
      return `${file.content}\n`;
    },
    write: (_path, text) => {
      if (file.readOnly) return Promise.reject(refusal('EROFS'));
      file.content = text;
      return Promise.resolve();
    },
  };
  const clock = new FakeClock();
  const repaired: string[] = [];
  let problems: readonly string[] = [];
  const log = new RecordingLog();
  const watched: (readonly SeenFile[])[] = [];
  let wanted = WANTED;
  const values = new KernelValues({
    values: () => wanted,
    clock,
    log,
    apply: (wanted) => applyKernelValues(wanted, files),
    // A file that cannot be read is as unwritable as one that is read-only.
    watch: (seen, periodMs, onChange) => {
      const { content, readOnly } = file;
      let cancel = (): void => undefined;
      const wait = (): void => {
        cancel = clock.callAt(clock.now() + periodMs, () => {
          const same = content === file.content && readOnly === file.readOnly;
          if (same) wait();
          else onChange();
        });
      };
      watched.push(seen);
      wait();
      return () => {
        cancel();
      };
    },
    onRepaired: ({ found }) => repaired.push(found),
    onChecked: (found) => {
      problems = found;
    },
  });
  const wish = (value: Wish): Promise<void> => {
    wanted = typeof value === 'number' ? [{ path: PATH, value, match: 'equal' }] : [value ?? []].flat();
    return values.apply();
  };
  return { values, clock, file, repaired, problems: () => problems, log, watched, wish };
}

function refusal(code: string): Error {
  return Object.assign(new Error(code), { code });
}

t.test('a kernel value is set, and set again within a second of an external change', async (t) => {
  const { values, clock, file, repaired } = setup('60');
  await values.apply();
  t.equal(file.content, '30');
  t.same(repaired, [], 'setting it for the first time repairs nothing');
  file.content = '7';
  await clock.advance(1000);
  t.equal(file.content, '30');
  t.same(repaired, ['7']);
});

t.test('a kernel value that cannot be set is reported until it can', async (t) => {
  const { values, clock, file, repaired, problems } = setup(null);
  await values.apply();
  t.match(problems(), [/nf_conntrack_udp_timeout should be 30, cannot be read: ENOENT/]);
  file.content = '60';
  await clock.advance(1000);
  t.same(problems(), []);
  t.same(repaired, [], 'it had never been right');

  file.readOnly = true;
  file.content = '7';
  await clock.advance(1000);
  t.match(problems(), [/should be 30, is 7 and cannot be written: EROFS/]);
  file.readOnly = false;
  await clock.advance(1000);
  t.same(problems(), []);
  t.same(repaired, ['7'], 'a repair that took two attempts');
});

t.test('a kernel value that is constantly overwritten is set less and less often', async (t) => {
  const { values, clock, file, repaired } = setup('30');
  await values.apply();
  for (let second = 0; second < 120; second++) {
    file.content = '7';
    await clock.advance(1000);
  }
  t.equal(repaired.length, 7, 'after 1, 2, 4 … and 64 times the first interval');
  await clock.advance(140_000);
  t.equal(file.content, '30');
  file.content = '7';
  await clock.advance(1000);
  t.equal(file.content, '30', 'once it was left alone it is set within a second again');
});

t.test('kernel values that are as they should be are not read again', async (t) => {
  const { values, clock, file, watched } = setup('60');
  await values.apply();
  t.same(watched, [[{ path: PATH, text: '30' }]], 'what was written counts as seen');
  const { reads } = file;
  await clock.advance(600_000);
  t.equal(file.reads, reads);
});

t.test('a sysctl that the kernel refuses is tried again every nine seconds', async (t) => {
  const { values, clock, file, problems, watched } = setup('60');
  file.readOnly = true;
  await values.apply();
  t.same(watched, [[{ path: PATH, text: '60' }]]);
  const { reads } = file;
  await clock.advance(90_000);
  t.equal(file.reads - reads, 10);
  t.equal(problems().length, 1);
});

t.test('kernel values have at most one timer, and none after the stop', async (t) => {
  const { values, clock, file } = setup('30');
  await Promise.all([values.apply(), values.apply(), values.apply()]);
  t.equal(clock.waiting, 1);
  const last = values.apply();
  values.stop();
  await last;
  t.equal(clock.waiting, 0);
  file.content = '7';
  await values.apply();
  t.equal(file.content, '7', 'nor is anything set');
});

t.test('a kernel value that is no longer configured is restored', async (t) => {
  const { values, clock, file, repaired, problems, wish } = setup('60');
  await values.apply();
  await wish(45);
  t.equal(file.content, '45');
  t.same(repaired, [], 'another wish is no repair');
  await wish(null);
  t.equal(file.content, '60', 'as before the first time it was set');
  file.content = '7';
  await clock.advance(60_000);
  t.equal(file.content, '7', 'from then on others may set it');
  await wish(30);
  await wish(null);
  t.equal(file.content, '7', 'and that is what it was the next time');
  t.same([repaired, problems()], [[], []]);
});

t.test('ST-40: a sysctl with a minimum keeps a larger value that an external change set', async (t) => {
  const { clock, file, repaired, wish } = setup('60');
  const least = (value: number): KernelValue => ({ path: PATH, value, match: 'at-least' });
  await wish(least(100));
  file.content = '2000';
  await clock.advance(60_000);
  t.same([file.content, repaired], ['2000', []]);
  file.content = '50';
  await clock.advance(60_000);
  t.same([file.content, repaired], ['100', ['50']], 'a smaller value is repaired');
  await wish(least(200));
  await wish(least(150));
  t.equal(file.content, '200', 'it is never lowered');
  await wish(null);
  t.equal(file.content, '60', 'nobody else changed it: as before');
  await wish(least(100));
  file.content = '2000';
  await wish(null);
  t.equal(file.content, '2000');
});

t.test('a kernel value marked as permanent stays, without a log line', async (t) => {
  const { values, file, problems, log, wish } = setup('60');
  await wish({ path: PATH, value: 45, match: 'equal', stays: true });
  await wish(null);
  values.stop();
  t.same([file.content, problems()], ['45', []]);
  t.notOk(log.lines.some((line) => line.includes('no longer asks for')));
});

t.test('restoring a kernel value is retried until it works', async (t) => {
  const { values, clock, file, repaired, problems, wish } = setup('60');
  await values.apply();
  file.readOnly = true;
  await wish(null);
  t.match(problems(), [/should be 60, is 30 and cannot be written: EROFS/]);
  file.readOnly = false;
  await clock.advance(1000);
  t.same([file.content, problems(), repaired], ['60', [], []]);
});

t.test('a kernel value that was right at the start stays, which is logged once', async (t) => {
  const { values, clock, file, problems, log, wish } = setup('30');
  await values.apply();
  await wish(45);
  await wish(null);
  await clock.advance(5000);
  t.same([file.content, problems()], ['45', []]);
  t.equal(log.lines.filter((line) => line.includes('stays: what it was before is not known')).length, 1);
});

t.test('without a kernel value to look at, no timer runs', async (t) => {
  const { clock, file, wish } = setup('60');
  await wish(null);
  t.equal(clock.waiting, 0, 'no value is asked for');
  await wish(30);
  t.equal(clock.waiting, 1);
  file.readOnly = true;
  await wish(null);
  t.equal(clock.waiting, 2, 'the former value is still to be restored: a watch, and the next attempt');
  file.readOnly = false;
  await clock.advance(1000);
  t.equal(file.content, '60');
  t.equal(clock.waiting, 0);
});
