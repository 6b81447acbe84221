import { setTimeout as sleep } from 'node:timers/promises';
import { parseMapping } from '../base/mapping.js';
import { CLEARED, redrawn } from '../base/redraw.js';
import type { OutputForm } from '../commands/shared-flags.js';
import type { Config } from '../config/config.js';
import type { ServiceTraffic } from '../observe/telemetry/service-series.js';
import { formatted } from '../serve/formatted.js';
import { TRAFFIC_PAGE } from '../serve/status-pages.js';
import { ask } from './ask.js';
import { AskError } from './ask-error.js';
import { columns } from './print-services.js';

interface Asked {
  readonly config: Pick<Config, 'statusSocket'>;
  readonly output: OutputForm;
  /** Between two looks. */
  readonly seconds: number;
  /** How many tables; 0: until it is interrupted. */
  readonly count: number;
  readonly sort: TopOrder;
  readonly endpoints: boolean;
  /** Rows of each table. */
  readonly limit: number;
}

export type TopOrder = 'connections' | 'bytes' | 'refused';

/** The traffic of a Service port or of one of its endpoints, per second. */
export interface TopRow {
  /** `namespace/name:port/protocol`. */
  readonly servicePort: string;
  /** Null: all of them. */
  readonly endpoint: string | null;
  readonly connections: number;
  /** In both directions. */
  readonly bytes: number;
  /** Refused and dropped packets. */
  readonly refused: number;
}

interface Sample {
  /** When the process read the kernel's counts, on its clock. */
  readonly at: number;
  readonly rows: ReadonlyMap<string, TopRow>;
}

/**
 * Prints the traffic of Services again and again, the busiest first. Returns the exit status.
 *
 * @throws AskError
 */
export async function top(
  asked: Asked,
  { isTerminal, write }: { readonly isTerminal: boolean; readonly write: (text: string) => Promise<void> },
): Promise<0> {
  if (isTerminal) await write(CLEARED);
  let before = await take(asked);
  for (let count = 0; asked.count === 0 || count < asked.count; count++) {
    await sleep(asked.seconds * 1000);
    const { now, rows } = await advance(before, asked);
    const text = formatted(busiest(rows, asked.sort), asked.output, (all) => printTop(all, asked.limit));
    await write(isTerminal ? redrawn(text) : count === 0 ? text : `\n${text}`);
    before = now;
  }
  return 0;
}

/** Many flows take long to list, and until the process reads the counts again there are no rates. */
const AGAIN_MS = 250;
/** The process reads 200,000 flows once a minute. */
const PATIENCE_MS = 120_000;

/** Rates from that reading to the next, and the next. */
async function advance(
  from: Sample,
  asked: Asked,
): Promise<{ readonly now: Sample; readonly rows: readonly TopRow[] }> {
  const until = performance.now() + PATIENCE_MS;
  for (let before = from; ;) {
    const now = await take(asked);
    if (now.at > before.at) return { now, rows: ratesOf(before.rows, now.rows, (now.at - before.at) / 1000) };
    // Without Services nothing is read.
    if (now.rows.size === 0) return { now, rows: [] };
    // A process that has started since then has another clock.
    if (now.at < before.at) before = now;
    if (performance.now() > until) throw new AskError('the process does not read its counts: see its log');
    await sleep(AGAIN_MS);
  }
}

async function take({ config, endpoints }: Asked): Promise<Sample> {
  const { text } = await ask(config.statusSocket, TRAFFIC_PAGE);
  const { services, at } = parseMapping(text) ?? {};
  if (!Array.isArray(services) || typeof at !== 'number')
    throw new AskError(`invalid answer on --status-socket: ${text.slice(0, 200)}`);
  return { at, rows: rowsOf(services as readonly ServiceTraffic[], endpoints) };
}

/** Sums since the process counts, by Service port and endpoint. */
function rowsOf(services: readonly ServiceTraffic[], withEndpoints: boolean): ReadonlyMap<string, TopRow> {
  const rows = services.flatMap(({ service, port, protocol, endpoints, refused, ...sum }): readonly TopRow[] => {
    const servicePort = `${service}${port === '' ? '' : `:${port}`}/${protocol}`;
    const packets = refused.reduce((all, each) => all + each.packets, 0);
    return [
      { servicePort, endpoint: null, ...amounts(sum), refused: packets },
      ...(withEndpoints
        ? endpoints.map(({ endpoint, ...each }) => ({ servicePort, endpoint, ...amounts(each), refused: 0 }))
        : []),
    ];
  });
  return new Map(rows.map((row) => [`${row.servicePort} ${row.endpoint ?? ''}`, row]));
}

function amounts({
  connections,
  requestBytes,
  replyBytes,
}: Pick<ServiceTraffic, 'connections' | 'requestBytes' | 'replyBytes'>): Pick<TopRow, 'connections' | 'bytes'> {
  return { connections, bytes: requestBytes + replyBytes };
}

/** The increase per second. New counters start at zero; counters that a restart reset start again. */
export function ratesOf(
  before: ReadonlyMap<string, TopRow>,
  now: ReadonlyMap<string, TopRow>,
  seconds: number,
): readonly TopRow[] {
  return [...now].map(([key, row]) => {
    const former = before.get(key);
    const rate = (of: TopOrder): number => {
      const first = former?.[of] ?? 0;
      return (row[of] - (first <= row[of] ? first : 0)) / seconds;
    };
    return { ...row, connections: rate('connections'), bytes: rate('bytes'), refused: rate('refused') };
  });
}

/** Those with any traffic, the greatest first. */
export function busiest(rows: readonly TopRow[], sort: TopOrder): readonly TopRow[] {
  return rows
    .filter(({ connections, bytes, refused }) => connections + bytes + refused > 0)
    .sort((one, other) => other[sort] - one[sort] || (one.servicePort < other.servicePort ? -1 : 1));
}

const RATES = ['CONNECTIONS/S', 'BYTES/S', 'REFUSED/S'];

/** @param limit how many; 0: all. */
export function printTop(rows: readonly TopRow[], limit: number): readonly string[] {
  const shown = limit === 0 ? rows : rows.slice(0, limit);
  const more = rows.length - shown.length;
  const withEndpoints = shown.some(({ endpoint }) => endpoint !== null);
  const header = ['SERVICE', ...(withEndpoints ? ['ENDPOINT'] : []), ...RATES];
  return [
    ...(rows.length === 0 ? ['no traffic'] : columns([header, ...shown.map((row) => cells(row, withEndpoints))])),
    ...(more > 0 ? [`and ${more} more; --limit 0 lists all`] : []),
  ];
}

function cells(
  { servicePort, endpoint, connections, bytes, refused }: TopRow,
  withEndpoint: boolean,
): readonly string[] {
  return [
    servicePort,
    ...(withEndpoint ? [endpoint ?? ''] : []),
    connections.toFixed(1),
    printBytes(bytes),
    refused.toFixed(1),
  ];
}

const UNITS = ['', 'Ki', 'Mi', 'Gi'];

function printBytes(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(bytes, 1)) / 10)));
  return `${(bytes / 1024 ** step).toFixed(step === 0 ? 0 : 1)}${UNITS[step] ?? ''}`;
}
