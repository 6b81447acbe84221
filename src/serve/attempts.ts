import { printEndpoint } from '../base/endpoint-list.js';
import type { AttemptsSeen, AttemptTally } from '../control/endpoint-attempts.js';
import type { Observation } from '../observe/observations.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { RunningProcess } from './running-process.js';

/** How many silent endpoints are named. */
const SHOWN = 10;

interface Counts {
  readonly attempts: number;
  readonly answers: number;
  readonly refusals: number;
}

/** Connection attempts to the endpoints that a packet may go to. */
export interface ExplainedAttempts {
  /** For how long they have been counted. */
  readonly countedSeconds: number;
  /** Those with attempts. */
  readonly endpoints: readonly (Counts & { readonly endpoint: string })[];
  /** Why they are not counted; null: they are. */
  readonly problem: string | null;
}

export function attemptsTo(
  { countedMs, problem, tallies }: AttemptsSeen,
  endpoints: readonly string[],
): ExplainedAttempts {
  return {
    countedSeconds: (countedMs ?? 0) / 1000,
    endpoints: endpoints.flatMap((name) => {
      const found = tallies.get(name);
      if (found === undefined) return [];
      const { endpoint, attempts, answers, refusals } = found;
      return [{ endpoint, attempts, answers, refusals }];
    }),
    problem,
  };
}

/** Under a second nothing can have been counted. */
const BEGUN_SECONDS = 1;

export function printAttempts({ countedSeconds, endpoints, problem }: ExplainedAttempts): readonly string[] {
  if (problem !== null) return [`not counted: ${problem}`];
  if (countedSeconds < BEGUN_SECONDS) return ['counted from now on, for a minute: ask again'];
  const { attempts, answers, refusals } = sumOf(endpoints);
  return [`in ${Math.round(countedSeconds)} s: ${attempts}, of which ${answers} answered and ${refusals} refused`];
}

/** Endpoints of Services that answered none of their last connection attempts. */
export function silentEndpoints({ attempts, families }: RunningProcess): readonly Observation[] {
  const silent = attempts?.seen()?.silent ?? [];
  if (silent.length === 0) return [];
  const wanted = new Set(silent.map(({ endpoint }) => endpoint));
  const owners = new Map(families.flatMap(({ table }) => [...servicePortsOf(table, wanted)]));
  const found = silent.flatMap((tally) => {
    const owner = owners.get(tally.endpoint);
    return owner === undefined ? [] : [observe(tally, owner)];
  });
  return found.slice(0, SHOWN).concat(found.length <= SHOWN ? [] : [more(found.length - SHOWN)]);
}

/** Of these endpoints, those that a packet may go to. Where it has no other one, nothing will answer it. */
export function silentAmong({ silent }: AttemptsSeen, endpoints: readonly string[]): readonly Observation[] {
  const found = silent.filter(({ endpoint }) => endpoints.includes(endpoint));
  const severity = found.length === new Set(endpoints).size ? 'warning' : 'note';
  return found.map((tally) => ({ ...observe(tally, null), severity }));
}

function observe(tally: AttemptTally, servicePort: string | null): Observation {
  const of = servicePort === null ? '' : ` of ${servicePort}`;
  return note(`endpoint ${tally.endpoint}${of} ${printSilence(tally) ?? ''}`);
}

function more(count: number): Observation {
  return note(`and ${count} more endpoints answer nothing`);
}

function note(text: string): Observation {
  const remedy = 'check its pod and node; a readiness probe would remove such an endpoint from its Services';
  return { kind: 'endpoint', severity: 'note', text, remedy };
}

/** Some Service port of each of these endpoints that connections may go to. */
function servicePortsOf(table: ForwardingTable, wanted: ReadonlySet<string>): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { endpoints: list, servicePort, protocol } of table.frontends()) {
    if (protocol !== 'TCP') continue;
    for (let index = 0; index < list.count; index++) {
      const endpoint = printEndpoint(list.address(index), list.port(index));
      if (wanted.has(endpoint) && !found.has(endpoint)) found.set(endpoint, servicePort);
    }
    if (found.size === wanted.size) break;
  }
  return found;
}

function sumOf(tallies: ExplainedAttempts['endpoints']): Counts {
  let [attempts, answers, refusals] = [0, 0, 0];
  for (const each of tallies) {
    attempts += each.attempts;
    answers += each.answers;
    refusals += each.refusals;
  }
  return { attempts, answers, refusals };
}

/** In words; null: it answered, or there were no attempts. */
export function printSilence({ unanswered, refused }: Pick<AttemptTally, 'unanswered' | 'refused'>): string | null {
  if (unanswered === 0) return null;
  if (refused >= unanswered) return `refused each of its last ${unanswered} connection attempts`;
  const but = refused === 0 ? '' : ` and refused ${refused} of them`;
  return `answered none of its last ${unanswered} connection attempts${but}`;
}
