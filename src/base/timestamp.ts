/** Wall time in nanoseconds since the epoch. */
export type WallClock = () => bigint;

const NS_PER_MS = 1_000_000n;
/** How far the monotonic clock may drift from the system's before it is set again. */
const TOLERANCE_NS = 2n * NS_PER_MS;

/** The system's time with the resolution of the monotonic clock; steps only when the system's time is set or has drifted away. */
export function systemWallClock(): WallClock {
  let offset = systemOffset();
  return () => {
    const current = systemOffset();
    const drift = current - offset;
    if (drift > TOLERANCE_NS || drift < -TOLERANCE_NS) offset = current;
    return process.hrtime.bigint() + offset;
  };
}

function systemOffset(): bigint {
  return BigInt(Date.now()) * NS_PER_MS - process.hrtime.bigint();
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** RFC 3339 to milliseconds since the epoch; null when it is something else. */
export function parseTimestamp(text: string): number | null {
  const time = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

/** RFC 3339 in UTC with nine digits of fraction. Null, no time at all, is the zero time as Go prints and reads it. */
export function formatTimestamp(time: bigint | null): string {
  if (time === null) return '0001-01-01T00:00:00Z';
  const seconds = new Date(Number(time / NS_PER_MS)).toISOString().slice(0, 19);
  return `${seconds}.${String(time % 1_000_000_000n).padStart(9, '0')}Z`;
}
