/** Wall time in nanoseconds since the epoch. */
export type WallClock = () => bigint;

const NS_PER_MS = 1_000_000n;
/** How far the monotonic clock may drift from the system's before it is set again. */
const TOLERANCE_NS = 2n * NS_PER_MS;

/** How often the system's time is asked for at first: at one of these nothing else gets in between. */
const FIRST_LOOKS = 5;

/** The system's time with the resolution of the monotonic clock; steps only when the system's time is set or has drifted away. */
export function systemWallClock(): WallClock {
  const looks = Array.from({ length: FIRST_LOOKS }, systemOffset);
  let offset = middle(looks.reduce((best, look) => (width(look) < width(best) ? look : best)));
  return () => {
    const now = systemOffset();
    if (offset < now.least - TOLERANCE_NS || offset > now.most + TOLERANCE_NS) offset = middle(now);
    return process.hrtime.bigint() + offset;
  };
}

/** What is between the system's clock and the monotonic one, in nanoseconds. */
interface Offset {
  readonly least: bigint;
  readonly most: bigint;
}

/** On a busy machine the process may wait between reading the two clocks, so the monotonic one is read before and after the other. */
function systemOffset(): Offset {
  const before = process.hrtime.bigint();
  const milliseconds = BigInt(Date.now());
  const after = process.hrtime.bigint();
  return { least: milliseconds * NS_PER_MS - after, most: (milliseconds + 1n) * NS_PER_MS - before };
}

function width({ least, most }: Offset): bigint {
  return most - least;
}

function middle({ least, most }: Offset): bigint {
  return (least + most) / 2n;
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** RFC 3339 to milliseconds since the epoch; null when it is something else. */
export function parseTimestamp(text: string): number | null {
  const time = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

/** RFC 3339 in UTC with six digits of fraction, as MicroTime of meta/v1 is written. */
export function formatMicroTime(microseconds: bigint): string {
  const seconds = new Date(Number(microseconds / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(microseconds % 1_000_000n).padStart(6, '0')}Z`;
}

/** RFC 3339 in UTC with nine digits of fraction. Null, no time at all, is the zero time as Go prints and reads it. */
export function formatTimestamp(time: bigint | null): string {
  if (time === null) return '0001-01-01T00:00:00Z';
  const seconds = new Date(Number(time / NS_PER_MS)).toISOString().slice(0, 19);
  return `${seconds}.${String(time % 1_000_000_000n).padStart(9, '0')}Z`;
}
