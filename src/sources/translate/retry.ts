import { isMapping } from '../../base/mapping.js';
import type { Fields } from './fields.js';

/** Longer than any client waits for the first answer to its first packets. */
const MOST_SECONDS = 60;
const SECONDS = /^([1-9]\d?)s$/;

/**
 * When unanswered attempts go to another endpoint, as an annotation of a Service sets it: seconds, 0 for "off", null without the annotation. An unreadable
 * value counts as absent, with a warning: it is not worth refusing a Service for.
 */
export function readRetry(metadata: Fields, annotation: string): number | null {
  const annotations = metadata.raw('annotations');
  const text = isMapping(annotations) ? annotations[annotation] : undefined;
  if (text === undefined) return null;
  if (text === 'off') return 0;
  const [, digits] = typeof text === 'string' ? (SECONDS.exec(text) ?? []) : [];
  const seconds = Number(digits);
  if (seconds <= MOST_SECONDS) return seconds;
  metadata.warn(`annotations[${annotation}]`, text, `must be "off" or "1s" to "${MOST_SECONDS}s", and is ignored`);
  return null;
}
