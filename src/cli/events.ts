import { hostname } from 'node:os';
import { systemClock } from '../base/clock.js';
import type { EventLimit } from '../base/events.js';
import type { Log } from '../base/log.js';
import { systemWallClock } from '../base/timestamp.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/errors.js';
import { DEFAULT_EVENT_RATES, type EventRates } from '../config/event-rates.js';
import { EventSender } from '../sources/kubernetes/events/event-sender.js';

/**
 * What tells users of the cluster, as often as flags let it.
 *
 * @throws ConfigError when the file of limits cannot be used.
 */
export async function openEvents({ kubernetes }: Pick<Config, 'kubernetes'>, log: Log): Promise<EventSender> {
  const rates: EventRates = kubernetes?.events ?? { ...DEFAULT_EVENT_RATES, limitFile: null };
  return new EventSender({
    hostname: hostname(),
    clock: systemClock,
    wallClock: systemWallClock(),
    log,
    rates,
    limit: rates.limitFile === null ? null : await readLimit(rates.limitFile, log),
  });
}

async function readLimit(file: string, log: Log): Promise<EventLimit> {
  // Loaded only where it is used: it is a file of its own.
  const { readEventLimit } = await import('../control/event-limit.js');
  const limit = readEventLimit(file, systemClock, log);
  if ('problem' in limit) throw new ConfigError('CONFIG_INVALID', null, [limit.problem]);
  return limit;
}
