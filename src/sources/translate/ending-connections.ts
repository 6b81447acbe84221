import { isMapping } from '../../base/mapping.js';
import type { EndingConnectionsRow } from '../../state/rows.js';
import type { Fields } from './fields.js';

/** `off`: connections to removed endpoints of the Service are never reset. `service`: as soon as an endpoint has left this Service. */
export const RESET_ANNOTATION = 'pointsman.dev/reset-removed-endpoints';
/** After which time connections to a terminating endpoint are reset. */
export const DRAIN_ANNOTATION = 'pointsman.dev/drain';

const DURATION = /^(?:(\d{1,2})h)?(?:(\d{1,4})m)?(?:(\d{1,5})s)?$/;
const LONGEST_SECONDS = 86_400;

/** What cannot be read is noted, and counts as absent: a Service is not refused for it. */
export function readEndingConnections(metadata: Fields): EndingConnectionsRow | null {
  const annotations = metadata.raw('annotations');
  if (!isMapping(annotations)) return null;
  const reset = readReset(metadata, annotations[RESET_ANNOTATION] ?? null);
  const drainSeconds = readDrain(metadata, annotations[DRAIN_ANNOTATION] ?? null);
  return reset === null && drainSeconds === null ? null : { reset, drainSeconds };
}

function readReset(metadata: Fields, value: unknown): EndingConnectionsRow['reset'] {
  if (value === null || value === 'off' || value === 'service') return value;
  metadata.warn(`annotations[${RESET_ANNOTATION}]`, value, 'must be one of off, service');
  return null;
}

function readDrain(metadata: Fields, value: unknown): number | null {
  if (value === null) return null;
  const found = typeof value === 'string' && value !== '' ? DURATION.exec(value) : null;
  const [hours, minutes, seconds] = [1, 2, 3].map((group) => Number(found?.[group] ?? 0));
  const total = (hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0);
  if (found !== null && total > 0 && total <= LONGEST_SECONDS) return total;
  metadata.warn(`annotations[${DRAIN_ANNOTATION}]`, value, 'must be a duration in whole seconds from 1s to 24h');
  return null;
}
