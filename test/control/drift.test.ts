import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import { Drift } from '../../src/control/drift.js';
import { FakeClock } from '../support/fake-clock.js';

/** When what others do is looked at. */

interface Setup {
  readonly clock: FakeClock;
  readonly drift: Drift;
  /** Times of checks asked for, of audits, and families suspected. */
  readonly checks: number[];
  readonly audits: number[];
  readonly suspected: (readonly [Family, string | null])[];
}

function setup(): Setup {
  const clock = new FakeClock(0);
  const checks: number[] = [];
  const audits: number[] = [];
  const suspected: (readonly [Family, string | null])[] = [];
  const drift = new Drift({
    clock,
    check: () => checks.push(clock.now()),
    audit: () => audits.push(clock.now()),
    onSuspicion: (family, process) => suspected.push([family, process]),
  });
  return { clock, drift, checks, audits, suspected };
}

function change(families: readonly Family[], missed = false): Parameters<Drift['noticed']>[0] {
  return { families, missed, process: 'nft[1]' };
}

t.test('external changes are checked once, after their burst', async (t) => {
  const { clock, drift, checks, suspected } = setup();
  for (let burst = 0; burst < 10; burst++) drift.noticed(change(['IPv4']));
  t.same(checks, []);
  t.equal(drift.begin('IPv4'), false, 'a run that happens to come has nothing to check yet');
  await clock.advance(10);
  t.same(checks, [3]);
  t.same(suspected, [['IPv4', 'nft[1]']]);
  t.equal(drift.begin('IPv6'), false);
  t.equal(drift.begin('IPv4'), true);
  t.equal(drift.begin('IPv4'), false, 'taken');
  await clock.advance(20);
  t.equal(drift.ended('IPv4', 10, true), 30, 'settled since it was noticed');
  t.equal(drift.suspects('IPv4'), false);
});

t.test('an external change during a check leads to another check', async (t) => {
  const { clock, drift, checks } = setup();
  drift.noticed(change(['IPv4']));
  await clock.advance(3);
  drift.begin('IPv4');
  drift.noticed(change(['IPv4']));
  t.equal(drift.ended('IPv4', 3, true), 3);
  t.equal(drift.suspects('IPv4'), true);
  await clock.advance(3);
  t.same(checks, [3, 6]);
});

t.test('a check that fails stays pending', async (t) => {
  const { clock, drift } = setup();
  drift.noticed(change(['IPv4']));
  await clock.advance(3);
  drift.begin('IPv4');
  t.equal(drift.ended('IPv4', 3, false), null);
  t.equal(drift.begin('IPv4'), true, 'by the retry');
  t.equal(drift.ended('IPv4', 3, true), 3);
});

t.test('an external change after a failed check is checked at once, however long the loop would wait', async (t) => {
  const { clock, drift, checks, suspected } = setup();
  drift.noticed(change(['IPv4']));
  await clock.advance(3);
  drift.begin('IPv4');
  drift.ended('IPv4', 3, false);
  await clock.advance(1000);
  t.same(checks, [3], 'not by itself');
  for (let burst = 0; burst < 10; burst++) drift.noticed(change(['IPv4']));
  await clock.advance(10);
  t.same(checks, [3, 1006]);
  t.equal(suspected.length, 1, 'it was reported before');
  t.equal(drift.begin('IPv4'), true);
  t.equal(drift.ended('IPv4', 1006, true), 1013, 'settled since it was noticed first');
});

t.test('constant external changes are repaired in a limited share of the time', async (t) => {
  const { clock, drift, checks } = setup();
  let busy = 0;
  for (let time = 0; time < 60_000; time += 10) {
    drift.noticed(change(['IPv4']));
    await clock.advance(10);
    if (!drift.begin('IPv4')) continue;
    const startedAt = clock.now();
    await clock.advance(500);
    time += 500;
    busy += 500;
    drift.ended('IPv4', startedAt, true);
  }
  t.ok(checks.length > 10, 'often');
  t.ok(busy < 2500 + 0.25 * 60_000, `${busy} ms of a minute`);
});

t.test('missed notifications lead to an audit, with a limited rate', async (t) => {
  const { clock, drift, audits, checks } = setup();
  for (let time = 0; time < 12_000; time += 100) {
    drift.noticed(change([], true));
    await clock.advance(100);
  }
  t.same(audits, [3, 5003, 10_003]);
  t.same(checks, []);
});
