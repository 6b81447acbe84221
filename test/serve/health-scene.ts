import { type Family } from '../../src/base/ip.js';
import { Progress, type FamilyProgress } from '../../src/record/progress.js';
import { HealthState } from '../../src/record/health.js';
import { FakeClock } from '../support/fake-clock.js';

export const TIMEOUT_MS = 60_000;

/** State of these families on a fake clock whose wall time at 0 is 2025-01-02T03:04:05.000000007Z. */
export function setup(...families: readonly Family[]): {
  clock: FakeClock;
  state: HealthState;
  progress: (family: Family) => FamilyProgress;
} {
  const clock = new FakeClock(0);
  const epoch = BigInt(Date.UTC(2025, 0, 2, 3, 4, 5)) * 1_000_000n + 7n;
  const wallClock = (): bigint => epoch + BigInt(clock.now()) * 1_000_000n;
  const all = new Progress(families, clock, wallClock);
  const state = new HealthState(all, TIMEOUT_MS, clock, wallClock);
  return { clock, state, progress: (family) => all.of(family)! };
}

export function sync(progress: FamilyProgress): void {
  progress.take();
  progress.acknowledge();
}
