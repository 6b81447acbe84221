import type { WallClock } from '../base/timestamp.js';
import type { StructuredPage } from './structured-page.js';

export interface StatusFacts {
  /** As reported by --version. */
  readonly version: string;
  /** Start of the process, nanoseconds since the epoch. */
  readonly startedAt: bigint;
  readonly wallClock: WallClock;
}

/** What runs, since when, and what it serves. */
export function statuszPage({ version, startedAt, wallClock }: StatusFacts, paths: readonly string[]): StructuredPage {
  const start = new Date(Number(startedAt / 1_000_000n));
  const uptime = (): number => Number((wallClock() - startedAt) / 1_000_000_000n);
  const binaryVersion = version.replace(/^v/, '');
  const emulationVersion = binaryVersion.split('.').slice(0, 2).join('.');
  const sorted = [...paths].sort();
  return {
    kind: 'Statusz',
    lines: () => [
      `Started: ${unixDate(start)}`,
      `Up: ${printUptime(uptime())}`,
      `Go version: ${process.version}`,
      `Binary version: ${binaryVersion}`,
      `Emulation version: ${emulationVersion}`,
      `Paths: ${sorted.join(' ')}`,
    ],
    fields: () => ({
      startTime: `${start.toISOString().slice(0, 19)}Z`,
      uptimeSeconds: uptime(),
      goVersion: process.version,
      binaryVersion,
      emulationVersion,
      paths: sorted,
    }),
  };
}

/** As date(1) prints it, in UTC: `Thu Jan  2 03:04:05 UTC 2025`. */
function unixDate(date: Date): string {
  const [weekday = '', day = '', month = '', year = '', time = ''] = date.toUTCString().replace(',', '').split(' ');
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} UTC ${year}`;
}

function printUptime(seconds: number): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}
