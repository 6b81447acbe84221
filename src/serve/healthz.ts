import type { ServerResponse } from 'node:http';
import { formatTimestamp } from '../base/timestamp.js';
import type { HealthPath, HealthState } from '../record/health.js';
import type { Observation } from '../observe/observations.js';
import { HttpEndpoint, route, type HttpEndpointOptions, type Page } from './http-endpoint.js';
import { answerWhole, JSON_HEADERS } from './listener.js';
import { sharedAnswer } from './shared-answer.js';

/**
 * The body and status of a health answer: field for field what kube-proxy answers. `verbose` adds when each source was last heard of, the sysctls that are
 * not right, the drift of each family, why changes are held back, what our client certificate wants, frontends that the kernel rejects, and tables that cannot be listed. /livez asks for
 * less: families that have never been synced are not part of it unless they are stuck.
 */
export function healthAnswer(
  state: HealthState,
  path: HealthPath,
  verbose = false,
  observed: readonly Observation[] = [],
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
  const apiHeardMs = state.apiHeardMs();
  const quarantined = state
    .quarantined()
    .map(({ family, frontend, servicePort, reason }) => ({ family, frontend, servicePort, reason }));
  const unlisted = state.unlisted();
  const body = JSON.stringify({
    // Clients of old expect a proxy that is well to have been updated just now.
    lastUpdated: formatTimestamp(ok ? now : latest),
    currentTime: formatTimestamp(now),
    ...(isLivez ? {} : { nodeEligible }),
    healthy,
    ...(families.length > 0 ? { status: Object.fromEntries(status) as unknown } : {}),
    ...(verbose ? { sources: printSources(state, now), sysctls: state.sysctls, drift: printDrift(state) } : {}),
    ...(verbose && apiHeardMs !== null ? { apiServer: { lastHeard: formatTimestamp(before(now, apiHeardMs)) } } : {}),
    ...(verbose && held !== null ? { held } : {}),
    ...(verbose && state.certificate !== null ? { clientCertificate: state.certificate } : {}),
    ...(verbose && quarantined.length > 0 ? { quarantined } : {}),
    ...(verbose && unlisted.length > 0 ? { unlisted } : {}),
    ...(observed.length > 0 ? { observations: observed } : {}),
  });
  return { status: ok ? 200 : 503, body };
}

function printSources(state: HealthState, now: bigint): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    state.sources().map(({ source, synced, sinceLastEventMs }) => {
      const at = sinceLastEventMs === null ? null : formatTimestamp(before(now, sinceLastEventMs));
      return [source, { synced, lastHeard: at }];
    }),
  );
}

/** So many milliseconds before, in nanoseconds. */
function before(now: bigint, ms: number): bigint {
  return now - BigInt(Math.round(ms)) * 1_000_000n;
}

function printDrift(state: HealthState): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    state.drift().map(({ family, since, process }) => [family, { since: formatTimestamp(since), process }]),
  );
}

export interface HealthServerOptions extends HttpEndpointOptions {
  readonly state: HealthState;
  /** What stands in the way of packets beside our rules: reported on request, without an effect on health. */
  readonly observe?: () => Promise<readonly Observation[]>;
  /** Called after each answer to one of the two paths. */
  readonly onAnswer?: (path: HealthPath, status: number) => void;
}

/** Serves /healthz and /livez over HTTP without authentication. */
export class HealthServer extends HttpEndpoint {
  constructor({ observe, ...rest }: HealthServerOptions) {
    // Every client may ask, and it reads rules, routes and settings of the node.
    const options = observe === undefined ? rest : { ...rest, observe: sharedAnswer(observe) };
    const page =
      (path: HealthPath): Page =>
      (_request, response, query) =>
        answer(options, path, query, response);
    const pages = new Map((['/healthz', '/livez'] as const).map((path) => [path as string, page(path)]));
    super('health checks', options, (request, response) =>
      route(request, response, (path) => pages.get(path), options),
    );
  }
}

async function answer(
  options: HealthServerOptions,
  path: HealthPath,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const isVerbose = query.has('verbose');
  const observe = isVerbose ? options.observe : undefined;
  // Nothing may keep health from being reported.
  const observed = observe === undefined ? [] : await observe().catch(() => []);
  const { status, body } = healthAnswer(options.state, path, isVerbose, observed);
  answerWhole(response, status, JSON_HEADERS, body);
  options.onAnswer?.(path, status);
}
