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

t.test('an external change is one line: by whom, how much, repaired in how long', (t) => {
  const fields: unknown[] = [];
  const log = new RecordingLog();
  const syncs = new SyncLog(
    {
      info: (verbosity, message, more) => {
        log.info(verbosity, message);
        if (message === 'external change repaired') fields.push(more);
      },
      warn: (...line) => {
        log.warn(line[0]);
      },
      error: (...line) => {
        log.error(line[0], line[1]);
      },
    },
    new FakeClock(),
  );
  const sync = (repairs: readonly string[]): void => {
    const report = { ...REPORT, repairs };
    syncs.acknowledged({ report, syncMs: 1, sinceChangeMs: 1, isFirst: false, newProblems: [] } as never);
  };
  syncs.externalChange('IPv4', 'nft[9950]');
  sync(['a', 'b']);
  syncs.repaired('IPv4', 0.25);
  t.strictSame(fields, [{ family: 'IPv4', process: 'nft[9950]', differences: 2, seconds: 0.25 }]);
  syncs.externalChange('IPv4', null);
  sync(['c']);
  syncs.repaired('IPv4', 1);
  t.match(fields[1], { process: 'unknown', differences: 1 });
  syncs.externalChange('IPv4', 'nft[1]');
  sync([]);
  syncs.repaired('IPv4', 1);
  t.equal(fields.length, 2, 'what left no difference is no line');
  t.end();
});
