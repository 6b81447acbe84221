import type { ServerResponse } from 'node:http';
import type { Clock } from '../loop/clock.js';
import { FAMILIES, type Family } from '../net/ip.js';
import { answerNotFound, HttpEndpoint, type Bind, type HttpEndpointOptions } from './http-endpoint.js';
import { answerWhole, JSON_HEADERS } from './listener.js';
import { formatTimestamp, type WallClock } from './timestamp.js';

interface FamilyHealth {
  /** First change no started sync has taken. */
  queuedSince: number | null;
  /** First change, or failure, that a started sync took and none has finished. */
  owedSince: number | null;
  /** Nanoseconds since the epoch; null before the first complete sync. */
  lastUpdated: bigint | null;
}

/** Something of ours in the kernel that somebody else may have changed, until it was looked at and repaired. */
export interface DriftStatus {
  readonly family: Family;
  /** Nanoseconds since the epoch. */
  readonly since: bigint;
  /** Who did it, as `nft[1234]`; null when unknown. */
  readonly process: string | null;
}

export interface FamilyStatus {
  readonly family: Family;
  /** Synced, and no change waits too long. */
  readonly healthy: boolean;
  /** A change waits too long, and not because changes are held back: the process does not do its work. */
  readonly stuck: boolean;
  /** End of the last successful sync, nanoseconds since the epoch; null before the first. */
  readonly lastUpdated: bigint | null;
}

/**
 * Whether the proxy does its work: every family it serves has been synced completely, and no change waits too long. No sockets, no
 * timers; a late change is noticed by asking.
 */
export class HealthState {
  /** Whether balancers may send to this node (KEP-3836); null while the Node is not known, which counts as no. */
  nodeEligible: boolean | null = null;
  /** Sysctls that are not what they should be, in sentences. */
  sysctls: readonly string[] = [];
  private holding: string | null = null;
  private releasedAt = -Infinity;
  private readonly states = new Map<Family, FamilyHealth>();
  private readonly drifts = new Map<Family, DriftStatus>();

  /** @param timeoutMs how long a change may wait: kube-proxy's is twice syncPeriod. */
  constructor(
    public timeoutMs: number,
    private readonly clock: Clock,
    readonly wallClock: WallClock,
  ) {}

  /** The families that must be synced. Healthy before any is known would be a guess, so nothing is. */
  expect(families: readonly Family[]): void {
    for (const family of families) this.stateOf(family);
  }

  /** A change for this family waits for the next sync. */
  queued(family: Family): void {
    this.stateOf(family).queuedSince ??= this.clock.now();
  }

  /** A sync starts, which takes every change queued so far; what is queued from now on is left for the next. */
  started(family: Family): void {
    const state = this.stateOf(family);
    state.owedSince ??= state.queuedSince;
    state.queuedSince = null;
  }

  /** The sync ended well. */
  synced(family: Family): void {
    const state = this.stateOf(family);
    state.owedSince = null;
    state.lastUpdated = this.wallClock();
  }

  /** The sync failed. A periodic one too then owes something: the kernel does not hold what it should. */
  failed(family: Family): void {
    this.stateOf(family).owedSince ??= this.clock.now();
  }

  /**
   * Changes are held back on purpose from now on, for the reason given; null: no longer. What waits makes the node unhealthy all the same, but the
   * process alive: another one would hold it back, too.
   */
  hold(reason: string | null): void {
    if (reason === null && this.holding !== null) this.releasedAt = this.clock.now();
    this.holding = reason;
  }

  /** Why changes are held back; null: they are not. */
  held(): string | null {
    return this.holding;
  }

  /** Somebody else may have changed what a family has in the kernel. */
  drifted(family: Family, process: string | null): void {
    if (!this.drifts.has(family)) this.drifts.set(family, { family, since: this.wallClock(), process });
  }

  /** The kernel was compared and holds what it should. */
  repaired(family: Family): void {
    this.drifts.delete(family);
  }

  /** In the order of {@link FAMILIES}. */
  drift(): readonly DriftStatus[] {
    return FAMILIES.flatMap((family) => this.drifts.get(family) ?? []);
  }

  /** Whether all families are in order; the node's eligibility is not part of it. */
  healthy(): boolean {
    return this.states.size > 0 && this.families().every((family) => family.healthy);
  }

  /** Whether the process does its work, as far as there is work for it. Nothing to do yet is no reason to end it (behaviour HZ-04). */
  alive(): boolean {
    return this.families().every((family) => !family.stuck);
  }

  /** In the order of {@link FAMILIES}. */
  families(): readonly FamilyStatus[] {
    const now = this.clock.now();
    return FAMILIES.flatMap((family) => {
      const state = this.states.get(family);
      if (state === undefined) return [];
      const since = state.owedSince ?? state.queuedSince;
      const late = since !== null && now - since >= this.timeoutMs;
      const stuck = late && this.holding === null && now - this.releasedAt >= this.timeoutMs;
      const { lastUpdated } = state;
      return [{ family, healthy: lastUpdated !== null && !late, stuck, lastUpdated }];
    });
  }

  private stateOf(family: Family): FamilyHealth {
    let state = this.states.get(family);
    if (state === undefined) {
      state = { queuedSince: null, owedSince: null, lastUpdated: null };
      this.states.set(family, state);
    }
    return state;
  }
}

export type HealthPath = '/healthz' | '/livez';

/**
 * The body and status of a health answer: field for field what kube-proxy answers; `verbose` adds the sysctls that are not right, the drift of each
 * family, and why changes are held back while they are. /livez asks for less: families that have never been synced are not part of it unless they are
 * stuck.
 */
export function healthAnswer(
  state: HealthState,
  path: HealthPath,
  verbose = false,
): { status: 200 | 503; body: string } {
  const now = state.wallClock();
  const isLivez = path === '/livez';
  const families = state.families().filter((family) => !isLivez || family.stuck || family.lastUpdated !== null);
  const healthy = isLivez ? state.alive() : state.healthy();
  const nodeEligible = state.nodeEligible ?? false;
  const ok = healthy && (isLivez || nodeEligible);
  const updates = families.flatMap(({ lastUpdated }) => (lastUpdated === null ? [] : [lastUpdated]));
  const latest = updates.reduce<bigint | null>((max, time) => (max === null || time > max ? time : max), null);
  const status = families.map(({ family, healthy, stuck, lastUpdated }) => [
    family,
    { lastUpdated: formatTimestamp(lastUpdated), healthy: isLivez ? !stuck : healthy },
  ]);
  const held = state.held();
  const body = JSON.stringify({
    // Clients of old expect a proxy that is well to have been updated just now.
    lastUpdated: formatTimestamp(ok ? now : latest),
    currentTime: formatTimestamp(now),
    ...(isLivez ? {} : { nodeEligible }),
    healthy,
    ...(families.length > 0 ? { status: Object.fromEntries(status) as unknown } : {}),
    ...(verbose ? { sysctls: state.sysctls, drift: printDrift(state), ...(held === null ? {} : { held }) } : {}),
  });
  return { status: ok ? 200 : 503, body };
}

function printDrift(state: HealthState): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    state.drift().map(({ family, since, process }) => [family, { since: formatTimestamp(since), process }]),
  );
}

export interface HealthServerOptions extends HttpEndpointOptions {
  readonly state: HealthState;
  /** Called after each answer to one of the two paths. */
  readonly onAnswer?: (path: HealthPath, status: number) => void;
}

/** Serves /healthz and /livez over HTTP without authentication. */
export class HealthServer {
  private readonly endpoint: HttpEndpoint;

  constructor(private readonly options: HealthServerOptions) {
    this.endpoint = new HttpEndpoint('health checks', options, (request, response) => {
      this.answer(request.url ?? '', response);
    });
  }

  /** Resolves after the first attempt to bind, whether it succeeded or not. Never rejects. */
  start(): Promise<void> {
    return this.endpoint.start();
  }

  /** As {@link HttpEndpoint.move}. */
  move(to: Bind | null): Promise<void> {
    return this.endpoint.move(to);
  }

  /** The port listened on; null while there is none. */
  port(): number | null {
    return this.endpoint.port();
  }

  close(): Promise<void> {
    return this.endpoint.close();
  }

  private answer(url: string, response: ServerResponse): void {
    const [path, query] = url.split('?', 2);
    if (path !== '/healthz' && path !== '/livez') {
      answerNotFound(response);
      return;
    }
    const { status, body } = healthAnswer(this.options.state, path, new URLSearchParams(query).has('verbose'));
    answerWhole(response, status, JSON_HEADERS, body);
    this.options.onAnswer?.(path, status);
  }
}
