import type { EndingConnectionsRow } from '../../state/rows.js';
import { annotationsOf, printUnreadable } from './balance.js';
import type { Fields } from './fields.js';

/** `off`: connections to removed endpoints of the Service are never reset. `service`: as soon as an endpoint has left this Service. */
export const RESET_ANNOTATION = 'pointsman.dev/reset-removed-endpoints';
/** After which time connections to a terminating endpoint are reset. */
export const DRAIN_ANNOTATION = 'pointsman.dev/drain';

const DURATION = /^(?:([0-9]{1,2})h)?(?:([0-9]{1,4})m)?(?:([0-9]{1,5})s)?$/;
const LONGEST_SECONDS = 86_400;

/** What a Service's annotations set; null: nothing. An unreadable value counts as absent: an annotation stops no Service. */
export function readEndingConnections(metadata: Fields): EndingConnectionsRow | null {
  const annotations = annotationsOf(metadata);
  const [resetText, drainText] = [annotations?.[RESET_ANNOTATION] ?? null, annotations?.[DRAIN_ANNOTATION] ?? null];
  if (resetText === null && drainText === null) return null;
  const reset = resetText === 'off' || resetText === 'service' ? resetText : null;
  const drainSeconds = readDuration(drainText);
  const unreadable = [
    ...(resetText === null || reset !== null ? [] : [printUnreadable(RESET_ANNOTATION, resetText, 'off or service')]),
    ...(drainText === null || drainSeconds !== null
      ? []
      : [printUnreadable(DRAIN_ANNOTATION, drainText, 'a duration in whole seconds from 1s to 24h')]),
  ];
  return { reset, drainSeconds, unreadable };
}

function readDuration(value: unknown): number | null {
  const found = typeof value === 'string' ? DURATION.exec(value) : null;
  if (found === null) return null;
  const [hours, minutes, seconds] = [found[1], found[2], found[3]].map((digits) => Number(digits ?? 0));
  const total = (hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0);
  return total > 0 && total <= LONGEST_SECONDS ? total : null;
}
