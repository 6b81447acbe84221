import { BALANCE_WORDS, type BalanceBy } from '../../base/balance.js';
import { isMapping } from '../../base/mapping.js';
import { cutText } from '../../base/outside-text.js';
import { MOST_WEIGHT, type BalanceRow, type ZoneSpill } from '../../state/rows.js';
import type { Fields } from './fields.js';

const BALANCE = 'pointsman.dev/balance';
const CILIUM_ALGORITHM = 'service.cilium.io/lb-algorithm';
const ZONE = 'pointsman.dev/zone';
const ZONE_CLIENTS = 'pointsman.dev/zone-clients';
const SLOW_START = 'pointsman.dev/slow-start';
const WEIGHT = 'pointsman.dev/weight';
const CILIUM_WEIGHT = 'service.cilium.io/weight';

/** Annotations on Services and EndpointSlices about how connections are shared. */
export const BALANCE_ANNOTATIONS: readonly string[] = [
  BALANCE,
  CILIUM_ALGORITHM,
  ZONE,
  ZONE_CLIENTS,
  SLOW_START,
  WEIGHT,
  CILIUM_WEIGHT,
];

/** Cilium's Maglev hashes the whole connection. */
const CILIUM_VALUES = new Map<string, BalanceBy>([
  ['random', 'random'],
  ['maglev', 'address-port'],
]);

/** So much of an unreadable value is shown. */
const SHOWN_BYTES = 64;

/** What a Service's annotations set; null: nothing. An unreadable value counts as absent: an annotation stops no Service. */
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
  const zone = annotations?.[ZONE] ?? null;
  if (zone !== null && zone !== 'spill') unreadable.push(printUnreadable(ZONE, zone, 'spill'));
  const spill = zone === 'spill' ? { clients: readClients(annotations?.[ZONE_CLIENTS] ?? null, unreadable) } : null;
  const slowStartSeconds = readSlowStart(annotations?.[SLOW_START] ?? null, unreadable);
  if (by === null && spill === null && slowStartSeconds === null && unreadable.length === 0) return null;
  return {
    by,
    ...(spill === null ? {} : { spill }),
    ...(slowStartSeconds === null ? {} : { slowStartSeconds }),
    unreadable,
  };
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60 };
/** More than an hour is no plausible slow start. */
const MOST_SECONDS = 3600;

/** `30s` or `5m`. */
function readSlowStart(value: unknown, unreadable: string[]): number | null {
  if (value === null) return null;
  const [, digits = '', unit = ''] = (typeof value === 'string' ? /^([0-9]{1,4})([sm])$/.exec(value) : null) ?? [];
  const seconds = Number(digits) * (SECONDS[unit] ?? 0);
  if (seconds > 0 && seconds <= MOST_SECONDS) return seconds;
  unreadable.push(printUnreadable(SLOW_START, value, 'a time of 1s to 60m'));
  return null;
}

const MOST_ZONES = 64;
/** A zone's name is a label's value. */
const CLIENTS = /^([A-Za-z0-9][A-Za-z0-9._-]{0,62})=([0-9]{1,6})$/;

/** `a=50,b=30,c=20`; null: all zones have as many. */
function readClients(value: unknown, unreadable: string[]): ZoneSpill['clients'] {
  if (value === null) return null;
  const parts = typeof value === 'string' ? value.split(',', MOST_ZONES + 1) : [];
  const clients = parts.map((part) => {
    const [, zone = '', share = ''] = CLIENTS.exec(part.trim()) ?? [];
    return { zone, share: Number(share) };
  });
  const zones = new Set(clients.map(({ zone }) => zone));
  const isReadable =
    clients.length > 0 && clients.length <= MOST_ZONES && zones.size === clients.length && !zones.has('');
  if (isReadable && clients.some(({ share }) => share > 0)) return clients;
  unreadable.push(printUnreadable(ZONE_CLIENTS, value, 'like "a=50,b=30,c=20"'));
  return null;
}

/** What an EndpointSlice's annotations set; null: nothing. */
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

export function annotationsOf(metadata: Fields): Readonly<Record<string, unknown>> | null {
  const annotations = metadata.raw('annotations');
  return isMapping(annotations) ? annotations : null;
}

export function printUnreadable(key: string, value: unknown, wanted: string): string {
  const shown = typeof value === 'string' ? JSON.stringify(cutText(value, SHOWN_BYTES)) : 'something else than a text';
  return `annotation ${key} is ${shown}, must be ${wanted}, and is ignored`;
}
