import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from '../base/service-limits.js';
import { invalid } from '../config/errors.js';
import { text } from '../config/flag.js';
import type { Given } from './given.js';

/** Flags of commands that judge Services as the proxies do: with the same limits. */
export const SERVICE_LIMIT_FLAGS = [
  text(
    'service-frontends-max',
    'int',
    'maximum frontends (ports × addresses) of one Service, as for the proxies',
    String(DEFAULT_SERVICE_LIMITS.frontends),
  ),
  text(
    'service-entries-max',
    'int',
    'maximum endpoints and source ranges of one Service, summed over its frontends, as for the proxies; session affinity counts as 100',
    String(DEFAULT_SERVICE_LIMITS.entries),
  ),
] as const;

/** The limits as {@link SERVICE_LIMIT_FLAGS} have them, and what is wrong with them. */
export function readServiceLimits(given: Pick<Given, 'text'>): {
  readonly limits: ServiceLimits;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const read = (name: (typeof SERVICE_LIMIT_FLAGS)[number]['name']): number => {
    const value = given.text(name);
    if (!/^[1-9]\d{0,8}$/.test(value)) problems.push(invalid(`--${name}`, value, 'must be a number greater than 0'));
    return Number(value);
  };
  return { limits: { frontends: read('service-frontends-max'), entries: read('service-entries-max') }, problems };
}
