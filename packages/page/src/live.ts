import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import type { Log } from '../../../src/base/log.js';
import { printableText } from '../../../src/base/printable.js';
import type { RowEdit } from '../../../src/state/store.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { LiveEvents, LiveSnapshot, Overview } from './api.js';
import { ChangedServices } from './changed-services.js';
import { histograms, history, latestFirst, repairsSince, syncsSince } from './history.js';
import { overview } from './overview.js';

/** Between two events of a name. */
const TICK_MS = 500;
/** Without anything to report: memory and ages. */
const OVERVIEW_MS = 5000;
/** After which a browser comes back. */
const RETRY_MS = 2000;
/** How long a client may read nothing. */
const STALLED_MS = 30_000;
/** Each holds a connection, of which others have few. */
const MAX_CLIENTS = 16;

type Named = { readonly [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] } };
type LiveEvent = Named[keyof LiveEvents];

/** One that listens. What it does not read in time it is not sent: there is never more than what was being written when it stopped. */
class Client {
  /** Since when nothing is read, on the clock; null: it is. */
  stalledSince: number | null = null;
  /** Something was left out. */
  missed = false;

  constructor(
    readonly response: ServerResponse,
    private readonly clock: Clock,
  ) {}

  send(text: string): void {
    if (this.stalledSince !== null) {
      this.missed = true;
      return;
    }
    if (!this.response.write(text)) this.stalledSince = this.clock.now();
  }
}

interface LiveParts {
  readonly running: RunningProcess;
  readonly clock: Clock;
  readonly log: Log;
}

/** Sends changes to every open page. Twice a second it looks at the state and sends the difference; nothing is noted while no client listens. */
export class Live {
  private readonly clients = new Set<Client>();
  private readonly services: ChangedServices;
  private cancelTick: (() => void) | null = null;
  private stopListening: (() => void) | null = null;
  private sent: SentState;
  private ids = 0;

  private readonly running: RunningProcess;
  private readonly clock: Clock;

  constructor(private readonly parts: LiveParts) {
    const { running, clock } = parts;
    this.running = running;
    this.clock = clock;
    this.services = new ChangedServices(running);
    this.sent = currentState(running, clock.now());
  }

  get isFull(): boolean {
    return this.clients.size >= MAX_CLIENTS;
  }

  /** Sends from now on, on a response whose head was sent. */
  async open(response: ServerResponse): Promise<void> {
    const client = new Client(response, this.clock);
    if (this.clients.size === 0) this.begin();
    this.clients.add(client);
    response.once('close', () => {
      this.clients.delete(client);
      if (this.clients.size === 0) this.end();
    });
    response.on('drain', () => {
      client.stalledSince = null;
      if (client.missed) void this.catchUp(client);
    });
    client.send(`retry: ${RETRY_MS}\n\n`);
    await this.catchUp(client);
  }

  private begin(): void {
    this.sent = currentState(this.running, this.clock.now());
    this.services.begin();
    this.stopListening = this.running.onChange((edits: readonly RowEdit[]) => {
      this.services.note(edits);
    });
    this.tickLater();
  }

  private end(): void {
    this.cancelTick?.();
    this.stopListening?.();
    this.services.end();
  }

  private tickLater(): void {
    this.cancelTick = this.clock.callAt(this.clock.now() + TICK_MS, () => void this.tick());
  }

  private async tick(): Promise<void> {
    const now = this.clock.now();
    for (const { response, stalledSince } of this.clients)
      if (stalledSince !== null && now - stalledSince >= STALLED_MS) response.destroy();
    try {
      const text = (await this.news()).map((event) => this.print(event)).join('');
      if (text !== '') for (const client of this.clients) client.send(text);
    } catch (error) {
      this.parts.log.error(error, 'cannot send changes to the page');
    }
    if (this.clients.size > 0) this.tickLater();
  }

  private async catchUp(client: Client): Promise<void> {
    client.missed = false;
    try {
      const data: LiveSnapshot = { overview: overview(this.running), history: await history(this.running) };
      if (!client.response.destroyed) client.send(this.print({ name: 'snapshot', data }));
    } catch (error) {
      this.parts.log.error(error, 'cannot send the state to the page');
      client.response.destroy();
    }
  }

  private print({ name, data }: LiveEvent): string {
    return `id: ${++this.ids}\nevent: ${name}\ndata: ${printableText(JSON.stringify(data))}\n\n`;
  }

  /** The difference from what was last sent. */
  private async news(): Promise<readonly LiveEvent[]> {
    const { running, sent } = this;
    const now = currentState(running, this.clock.now());
    const isSame = now.signature === sent.signature && now.at - sent.at < OVERVIEW_MS;
    this.sent = isSame ? { ...now, at: sent.at } : now;
    const services = this.services.take();
    const isReconfigured = now.loaded !== sent.loaded || now.refused !== sent.refused;
    return [
      ...(isSame ? [] : [{ name: 'overview', data: now.overview } as const]),
      ...(services === null ? [] : [{ name: 'services', data: services } as const]),
      ...(await this.syncs(sent)),
      ...this.repairs(sent),
      ...(isReconfigured ? [{ name: 'configuration', data: {} } as const] : []),
    ];
  }

  private async syncs(sent: SentState): Promise<readonly LiveEvent[]> {
    const { families } = this.running;
    const happened = families.reduce((sum, { history }, index) => sum + history.syncs - (sent.syncs[index] ?? 0), 0);
    if (happened === 0) return [];
    const rows = latestFirst(
      families.flatMap((sync, index) => syncsSince(sync, sent.syncs[index] ?? 0)),
      ({ endedAt }) => endedAt,
    );
    const latency = histograms(await this.running.latencies());
    return [{ name: 'syncs', data: { syncs: rows, skipped: happened - rows.length, latency } }];
  }

  private repairs(sent: SentState): readonly LiveEvent[] {
    const rows = this.running.families.flatMap((sync, index) => repairsSince(sync, sent.repairs[index] ?? 0));
    return rows.length === 0 ? [] : [{ name: 'repairs', data: { repairs: latestFirst(rows, ({ at }) => at) } }];
  }
}

/** The state when it was last sent. */
interface SentState {
  readonly at: number;
  readonly overview: Overview;
  /** The part of the overview that counts as news. */
  readonly signature: string;
  /** Numbers of the last ones by family. */
  readonly syncs: readonly number[];
  readonly repairs: readonly number[];
  readonly loaded: unknown;
  readonly refused: string | null;
}

function currentState(running: RunningProcess, at: number): SentState {
  const now = overview(running);
  const { families, health, services, sources, node, mode } = now;
  return {
    at,
    overview: now,
    signature: JSON.stringify([
      families.map(({ pendingMs, ...family }) => [pendingMs === null, family]),
      { ...health, reasons: health.reasons.map(({ kind, family, text }) => [kind, family, text]) },
      sources.map(({ source, synced, failures }) => [source, synced, failures]),
      [services, node, mode],
    ]),
    syncs: running.families.map(({ history: { syncs } }) => syncs),
    repairs: running.families.map(({ history: { recentlyRepaired } }) => recentlyRepaired[0]?.number ?? 0),
    loaded: running.loaded(),
    refused: running.refusal(),
  };
}
