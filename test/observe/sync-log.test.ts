// The log of syncs: an external change is one line, with who made it, how much, and how long the repair took.
import t from 'tap';
import { SyncLog } from '../../src/observe/sync-log.js';
import type { SyncReport } from '../../src/dataplane/contract.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

const REPORT: SyncReport = {
  family: 'IPv4',
  full: true,
  transactions: 1,
  elementOperations: 2,
  ruleOperations: 0,
  bytes: 100,
  repairs: [],
  problems: [],
  rules: null,
  quarantined: [],
  flows: new Set(),
};

t.test('an external change is one log line: process, size, time to the repair', (t) => {
  const fields: unknown[] = [];
  const log = new RecordingLog();
  const syncs = new SyncLog(
    {
      info: (verbosity, message) => {
        log.info(verbosity, message);
      },
      warn: (message, more) => {
        log.warn(message);
        fields.push(more);
      },
      error: (...line) => {
        log.error(line[0], line[1]);
      },
    },
    new FakeClock(),
  );
  const repair = (process: string | null, seconds: number | null, ...repairs: readonly string[]): void => {
    const report = { ...REPORT, repairs };
    syncs.acknowledged({ report, syncMs: 1, sinceChangeMs: 1, isFirst: false, newProblems: [] } as never);
    syncs.repaired({ family: 'IPv4', process, differences: repairs.length, seconds });
  };
  repair('nft[9950]', 0.25, 'a', 'b');
  t.strictSame(fields, [{ family: 'IPv4', process: 'nft[9950]', differences: 2, seconds: 0.25 }]);
  repair(null, null, 'c');
  t.strictSame(fields[1], { family: 'IPv4', process: 'unknown', differences: 1 }, 'the periodic comparison found it');
  repair('nft[1]', 1);
  t.equal(fields.length, 2, 'what left no difference is no line');
  t.end();
});
