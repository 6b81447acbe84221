import { BALANCE_WORDS, type BalanceBy } from '../../base/balance.js';
import { isMapping } from '../../base/mapping.js';
import { cutText } from '../../base/outside-text.js';
import { MOST_WEIGHT, type BalanceRow } from '../../state/rows.js';
import type { Fields } from './fields.js';

const BALANCE = 'pointsman.dev/balance';
const CILIUM_ALGORITHM = 'service.cilium.io/lb-algorithm';
const WEIGHT = 'pointsman.dev/weight';
const CILIUM_WEIGHT = 'service.cilium.io/weight';

/** Annotations on Services and EndpointSlices about how connections are shared. */
export const BALANCE_ANNOTATIONS: readonly string[] = [BALANCE, CILIUM_ALGORITHM, WEIGHT, CILIUM_WEIGHT];

/** Cilium's Maglev hashes the whole connection. */
const CILIUM_VALUES = new Map<string, BalanceBy>([
  ['random', 'random'],
  ['maglev', 'address-port'],
]);

/** Of a value that cannot be read so much is shown. */
const SHOWN_BYTES = 64;

/** What a Service's annotations say; null: nothing. What cannot be read counts as absent: an annotation stops no Service. */
export function readBalance(metadata: Fields): BalanceRow | null {
  const annotations = annotationsOf(metadata);
  const unreadable: string[] = [];
  const read = (key: string, values: ReadonlyMap<string, BalanceBy>): BalanceBy | null => {
    const value = annotations?.[key] ?? null;
    if (value === null) return null;
    const found = typeof value === 'string' ? values.get(value) : undefined;
    if (found === undefined) unreadable.push(printUnreadable(key, value, `one of ${[...values.keys()].join(' ')}`));
    return found ?? null;
  };
  const own = read(BALANCE, BALANCE_WORDS);
  const by = own ?? read(CILIUM_ALGORITHM, CILIUM_VALUES);
  return by === null && unreadable.length === 0 ? null : { by, unreadable };
}

/** What an EndpointSlice's annotations say; null: nothing. */
export function readWeight(metadata: Fields): { readonly weight?: number; readonly unreadable?: string } | null {
  const annotations = annotationsOf(metadata);
  if (annotations === null) return null;
  const key = (annotations[WEIGHT] ?? null) === null ? CILIUM_WEIGHT : WEIGHT;
  const value = annotations[key] ?? null;
  if (value === null) return null;
  const weight = typeof value === 'string' && /^[0-9]{1,5}$/.test(value) ? Number(value) : null;
  if (weight !== null && weight <= MOST_WEIGHT) return { weight };
  return { unreadable: printUnreadable(key, value, `a whole number from 0 to ${MOST_WEIGHT}`) };
}

function annotationsOf(metadata: Fields): Readonly<Record<string, unknown>> | null {
  const annotations = metadata.raw('annotations');
  return isMapping(annotations) ? annotations : null;
}

function printUnreadable(key: string, value: unknown, wanted: string): string {
  const shown = typeof value === 'string' ? JSON.stringify(cutText(value, SHOWN_BYTES)) : 'something else than a text';
  return `annotation ${key} is ${shown}, must be ${wanted}, and counts as absent`;
}
