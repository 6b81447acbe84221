import type { ServiceLimits } from '../base/service-limits.js';
import { invalid } from './errors.js';
import type { FlagName } from './flag-table.js';
import { numberFlag, settingOf, type CommandLine } from './flags.js';

/** How much of one Service is programmed, as the flags have it. */
export function readServiceLimits(line: CommandLine, problems: string[]): ServiceLimits {
  const read = (name: FlagName): number => {
    const value = numberFlag(line, name) ?? Number(settingOf(line, name));
    if (value < 1) problems.push(invalid(`--${name}`, value, 'must be greater than 0'));
    return value;
  };
  return { frontends: read('service-frontends-max'), entries: read('service-entries-max') };
}
