import t from 'tap';
import { FamilySync } from '../../src/control/family-sync.js';
import { ForeignChanges } from '../../src/control/foreign-changes.js';
import type { ForeignChange } from '../../src/dataplane/contract.js';
import { CycleObservers } from '../../src/observe/cycle-observer.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

function watcher(): { readonly changes: ForeignChanges; readonly log: RecordingLog; readonly notified: string[] } {
  const [log, notified] = [new RecordingLog(), [] as string[]];
  const drift = {
    noticed: () => void notified.push('noticed'),
    suspect: (family: string) => void notified.push(`suspect ${family}`),
  };
  const observers = new CycleObservers({
    audited: (family, result) => void notified.push(`${family} ${result}`),
  });
  return { changes: new ForeignChanges({ drift, observers, clock: new FakeClock(), log }), log, notified };
}

t.test('a kernel that refuses the watch is reported once, and the watch is tried again by the next call', (t) => {
  const { changes, log, notified } = watcher();
  const refuse = (): never => {
    throw new Error('EPERM');
  };
  changes.watch(refuse, []);
  changes.watch(refuse, []);
  t.strictSame(log.lines, ['error cannot watch the ruleset, only the periodic check finds external changes: EPERM']);
  let listeners = 0;
  const watch = (onChange: (change: ForeignChange) => void): (() => void) => {
    listeners++;
    onChange({} as ForeignChange);
    return () => {
      listeners--;
    };
  };
  changes.watch(watch, []);
  changes.watch(watch, []);
  t.equal(listeners, 1, 'who listens does not begin again');
  t.same(notified, ['noticed']);
  changes.stop();
  t.equal(listeners, 0);
  changes.watch(watch, []);
  t.equal(listeners, 1);
  changes.stop();
  t.end();
});

/** A family whose audit ends as it is told, with another dataplane in its place by then where `replaced`. */
function audited(end: () => boolean, replaced: boolean): FamilySync {
  const audit = (): Promise<boolean> =>
    new Promise((resolve) => {
      if (replaced) sync.dataplane = { audit };
      resolve(end());
    });
  const sync = { family: 'IPv4', dataplane: { audit } };
  return sync as unknown as FamilySync;
}

t.test('an audit that fails is counted and logged, except one of rules that are being replaced', async (t) => {
  const fail = (): never => {
    throw new Error('ENOBUFS');
  };
  for (const [end, replaced, wanted, reported] of [
    [() => true, false, ['suspect IPv4', 'IPv4 different'], ['info 4 audited']],
    [() => false, false, ['IPv4 intact'], ['info 4 audited']],
    [fail, false, ['IPv4 failed'], ['info 2 audit failed']],
    [() => true, true, [], []],
    [fail, true, [], []],
  ] as const) {
    const { changes, log, notified } = watcher();
    await changes.audit(audited(end, replaced));
    t.same(notified, wanted);
    t.same(log.lines, reported);
  }
});
