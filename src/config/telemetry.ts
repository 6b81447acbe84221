import type { KubeProxyConfiguration } from './document.js';
import { invalid } from './errors.js';
import type { FlagName } from './flag-table.js';
import { isFlagSet, numberFlag, settingOf, type CommandLine } from './flags.js';

/** What is counted of Services. */
export interface TelemetryConfig {
  /** Whether each endpoint is, too. */
  readonly endpoints: boolean;
  /** How many Service ports, and how many endpoints, have numbers of their own; at least 1. */
  readonly max: number;
}

const MAX = 'service-telemetry-max';
const DETAILS: readonly FlagName[] = ['service-telemetry-endpoints', MAX];

/** Null: nothing is counted, as where the platform balances by itself and tells nothing. */
export function readTelemetry(
  line: CommandLine,
  { mode }: KubeProxyConfiguration,
  problems: string[],
): TelemetryConfig | null {
  const max = numberFlag(line, MAX) ?? Number(settingOf(line, MAX));
  if (max < 1) problems.push(invalid('--service-telemetry-max', max, 'must be greater than 0'));
  if (mode === 'kernelspace' || !isFlagSet(line, 'service-telemetry')) return null;
  return { endpoints: isFlagSet(line, 'service-telemetry-endpoints'), max };
}

/** Flags that change nothing. */
export function unusedTelemetry(line: CommandLine, { mode }: KubeProxyConfiguration): readonly string[] {
  const isAsked = isFlagSet(line, 'service-telemetry');
  const unused =
    mode === 'kernelspace' && isAsked ? (['service-telemetry', ...DETAILS] as const) : isAsked ? [] : DETAILS;
  const why = isAsked ? `in mode ${mode}` : 'without --service-telemetry';
  return unused.filter((flag) => line.given.has(flag)).map((flag) => `--${flag}: has no effect ${why}`);
}
