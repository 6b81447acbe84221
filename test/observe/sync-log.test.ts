// The log of syncs: an external change is one line, with who made it, how much, and how long the repair took.
import t from 'tap';
import { SyncLog } from '../../src/observe/sync-log.js';
import type { Family } from '../../src/base/ip.js';
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
    syncs.repaired({ family: 'IPv4', process, differences: repairs.length, what: repairs[0] ?? null, seconds });
  };
  repair('nft[9950]', 0.2504, 'a', 'b');
  t.strictSame(fields, [{ family: 'IPv4', process: 'nft[9950]', differences: 2, what: 'a', seconds: 0.25 }]);
  repair(null, null, 'c');
  t.strictSame(
    fields[1],
    { family: 'IPv4', process: 'unknown', differences: 1, what: 'c' },
    'the periodic comparison found it',
  );
  repair('nft[1]', 1);
  t.equal(fields.length, 2, 'what left no difference is no line');
  t.end();
});

t.test('a limitation is one log line for all families that have it', (t) => {
  const lines: unknown[] = [];
  const note = (message: string, fields: unknown): void => {
    lines.push([message, fields]);
  };
  const syncs = new SyncLog(
    {
      info: (verbosity, message, fields) => {
        if (verbosity === 0) note(message, fields);
      },
      warn: note,
      error: () => undefined,
    },
    new FakeClock(),
  );
  const end = (family: Family, ...limitations: NonNullable<SyncReport['limitations']>): void => {
    const report = { ...REPORT, family, limitations };
    syncs.acknowledged({ report, syncMs: 1, sinceChangeMs: 1, isFirst: false, newProblems: [] } as never);
    syncs.syncEnded({ family, full: true, seconds: 1, result: { type: 'success' }, counts: true });
  };
  const begin = (): void => {
    syncs.syncBegan('IPv4');
    syncs.syncBegan('IPv6');
  };
  const both = { of: 'mode', text: 'attempts wait' } as const;
  begin();
  end('IPv4', both);
  t.same(lines, [], 'the other family is under way');
  end('IPv6', both, { of: 'kernel', text: 'no sets' });
  const logged = [
    ['limitation', { families: 'IPv4,IPv6', limitation: 'attempts wait' }],
    ['limitation', { families: 'IPv6', limitation: 'no sets' }],
  ];
  t.strictSame(lines, logged);
  begin();
  end('IPv4', both);
  end('IPv6', both);
  t.strictSame(lines, logged, 'once');
  t.end();
});
