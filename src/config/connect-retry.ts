import { NO_RETRIES, type RetryTimes } from '../base/conntrack-timeouts.js';
import type { KubeProxyConfiguration } from './document.js';
import { durationMilliseconds, parseDuration } from './duration.js';
import { invalid } from './errors.js';
import type { FlagName } from './flag-table.js';
import { settingOf, type CommandLine } from './flags.js';

/** Longer than any client waits for the first answer to its first packets. */
const MOST_RETRY_SECONDS = 60;

const FLAGS = ['connect-retry', 'dns-retry'] as const satisfies readonly FlagName[];

/** When unanswered attempts go to another endpoint, as the flags have it. */
export function readRetryTimes(line: CommandLine, { mode }: KubeProxyConfiguration, problems: string[]): RetryTimes {
  const read = (name: FlagName): number | null => {
    const text = settingOf(line, name);
    const duration = parseDuration(text);
    const seconds = duration === null ? NaN : durationMilliseconds(duration) / 1000;
    const isRight = Number.isInteger(seconds) && seconds >= 0 && seconds <= MOST_RETRY_SECONDS;
    if (!isRight)
      problems.push(
        invalid(`--${name}`, text, `must be whole seconds, 0 to ${MOST_RETRY_SECONDS}: conntrack counts in these`),
      );
    return isRight && seconds > 0 ? seconds : null;
  };
  const [tcp, dns] = [read('connect-retry'), read('dns-retry')];
  return retriesIn(mode) ? { tcp, dns } : NO_RETRIES;
}

/** Whether a mode has rules that give new flows other timeouts. */
function retriesIn(mode: string): boolean {
  return mode === 'nftables' || mode === 'iptables';
}

/** Flags that change nothing. */
export function unusedRetryTimes(line: CommandLine, { mode }: KubeProxyConfiguration): readonly string[] {
  if (retriesIn(mode)) return [];
  return FLAGS.filter((flag) => line.given.has(flag)).map((flag) => `--${flag}: has no effect in mode ${mode}`);
}
