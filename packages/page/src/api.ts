import type {
  EndpointsPage,
  EndpointsQuery,
  ExplainAnswer,
  ExplainQuery,
  FrontendsPage,
  FrontendsQuery,
  IpFamily,
  ServiceDetail,
  ServiceProblem,
  ServiceQuery,
  ServicesPage,
  ServicesQuery,
} from '../../../src/serve/service-answers.js';

export type * from '../../../src/serve/service-answers.js';

/**
 * What the page asks, and what it is answered: JSON by GET, and server-sent events. Types alone, which import nothing from elsewhere, so that the page's own
 * project can have them. Texts are for people, as `pointsman status` and `explain` print them, and may hold whatever a user wrote into an object: they are
 * shown as text, never as markup. Addresses of the API are relative to the page's (`api/…` beside `./`): the page may be served below any prefix.
 *
 * Anything but 200 carries an {@link ApiError}. Times are RFC 3339, durations milliseconds unless the name has another unit.
 */

/** By path, relative to the page: the query, and the answer. */
export interface Api {
  readonly 'api/overview': { readonly query: NoQuery; readonly answer: Overview };
  readonly 'api/services': { readonly query: ServicesQuery; readonly answer: ServicesPage };
  readonly 'api/service': { readonly query: ServiceQuery; readonly answer: ServiceDetail };
  readonly 'api/frontends': { readonly query: FrontendsQuery; readonly answer: FrontendsPage };
  readonly 'api/endpoints': { readonly query: EndpointsQuery; readonly answer: EndpointsPage };
  readonly 'api/explain': { readonly query: ExplainQuery; readonly answer: ExplainAnswer };
  readonly 'api/triage': { readonly query: NoQuery; readonly answer: TriageAnswer };
  readonly 'api/history': { readonly query: NoQuery; readonly answer: History };
  readonly 'api/configuration': { readonly query: NoQuery; readonly answer: Configuration };
}

type NoQuery = Readonly<Record<string, never>>;

/** 400: the question cannot be answered; 404: there is none of that name; 503: too many streams are open. */
export interface ApiError {
  readonly error: string;
}

// ---- Overview: small, and sent whole whenever it changes.

export interface Overview {
  /** Release of the process, our own. */
  readonly release: string;
  /** Version of Kubernetes, as --version reports it. */
  readonly version: string;
  readonly mode: string;
  readonly node: string;
  readonly pid: number;
  readonly startedAt: string;
  /** When this was made. */
  readonly at: string;
  readonly health: Health;
  readonly families: readonly FamilyOverview[];
  readonly sources: readonly SourceOverview[];
  /** Services that the sources know, whether or not they have something to forward. */
  readonly services: number;
  readonly memory: { readonly residentBytes: number; readonly heapBytes: number; readonly externalBytes: number };
}

/** What /healthz reports, and why. */
export interface Health {
  /** The rules are in step with the cluster. */
  readonly healthy: boolean;
  /** Whether load balancers may send here; null: not known, which counts as no. */
  readonly nodeEligible: boolean | null;
  /** Whatever is not as it should be, the worst first; empty: nothing. There may be some although the process is healthy. */
  readonly reasons: readonly HealthReason[];
}

export interface HealthReason {
  /** `bad` makes the process unhealthy or takes the node out of rotation for load balancers; `warning` does not. */
  readonly severity: 'bad' | 'warning';
  /** Stable, for telling reasons apart. */
  readonly kind:
    | 'reading' // sources have not reported all objects
    | 'unsynced' // something could not be read
    | 'held' // changes are held back on purpose
    | 'not-synced' // a family was never synced
    | 'late' // a change waits too long
    | 'failing' // the last sync failed
    | 'node' // the node is leaving, or not known
    | 'drift' // another process changed rules, which are being repaired
    | 'sysctl'
    | 'configuration' // changed files were refused
    | 'quarantined' // frontends are quarantined
    | 'unplanned' // Services cannot be planned
    | 'conflict'; // Services claim one address
  /** Null: it concerns both, or neither. */
  readonly family: IpFamily | null;
  readonly text: string;
  /** Null: not known. */
  readonly since: string | null;
}

export interface FamilyOverview {
  readonly family: IpFamily;
  readonly healthy: boolean;
  /** Services with something to forward. */
  readonly services: number;
  readonly frontends: number;
  /** Distinct per Service port. */
  readonly endpoints: number;
  readonly pendingFrontends: number;
  /** Since when a change waits for the kernel; null: none does. */
  readonly pendingMs: number | null;
  /** When the kernel last acknowledged a sync; null: never. */
  readonly syncedAt: string | null;
  readonly conflicts: number;
  readonly quarantined: number;
  readonly unplanned: number;
  /** Since the start. */
  readonly syncs: number;
  readonly failures: number;
  readonly repairs: number;
}

export interface SourceOverview {
  readonly source: string;
  /** All that was there at the start has been read. */
  readonly synced: boolean;
  /** When its last event came; null: never. Quiet is no fault: the page shows it as an age. */
  readonly lastEventAt: string | null;
  /** Failures since the start, by kind; those that never happened are left out. */
  readonly failures: readonly { readonly kind: string; readonly count: number }[];
}

// ---- Triage: what is wrong beyond {@link Health}, and what the node does right now.

export interface TriageAnswer {
  /** Kinds of problems that Services have, the worst first. */
  readonly problems: readonly ProblemCount[];
  /** Something outside our rules that stands in a packet's way, warnings first; as `pointsman status` prints them. */
  readonly observations: readonly Observed[];
  readonly activity: Activity;
}

export interface ProblemCount {
  readonly problem: ServiceProblem;
  /** How many Services have it. */
  readonly count: number;
  /** The first of them, by key. */
  readonly examples: readonly string[];
}

export interface Observed {
  readonly severity: 'warning' | 'note';
  readonly text: string;
  readonly remedy: string;
}

/** The last 15 minutes, as far as the page was open or was open within them. Columns have one number a step, the latest last. */
export interface Activity {
  readonly stepSeconds: number;
  /** The end of the last step. Null: there is none yet. */
  readonly endedAt: string | null;
  /** The longest sync that ended in the step, in milliseconds; null: none ended. */
  readonly syncMs: readonly (number | null)[];
  /** Frontends that changed in the kernel. */
  readonly changes: readonly number[];
  /** Connections through Services; null: they were not counted. */
  readonly connections: readonly (number | null)[];
  /** Packets refused or dropped by this node's rules; null: they were not counted. */
  readonly refused: readonly (number | null)[];
  /** The busiest Services of the last step, the busiest first; null: traffic is not counted. */
  readonly busiest: readonly BusyService[] | null;
}

export interface BusyService {
  /** `namespace/name`; `_other`: all that are not listed by name. */
  readonly key: string;
  /** Per second. */
  readonly connections: number;
  readonly bytes: number;
  readonly refused: number;
}

// ---- History.

export interface History {
  /** Syncs of both families, latest first, at most 64 for each. */
  readonly syncs: readonly Sync[];
  /** Since the start, slowest first; those that compare everything do not count. */
  readonly slowest: readonly Sync[];
  /** Latest first, at most 32 for each family. */
  readonly repairs: readonly Repair[];
  /** The last failed sync of each family, if there was one. */
  readonly failures: readonly Failure[];
  readonly latency: readonly LatencyHistogram[];
}

/** One sync that changed something, or compared everything. */
export interface Sync {
  /** Unique and growing within the family since the start. */
  readonly number: number;
  readonly family: IpFamily;
  readonly endedAt: string;
  /** It compared everything with the kernel. */
  readonly full: boolean;
  /** From the start of the sync to the kernel's acknowledgement. */
  readonly syncMs: number;
  /** The same from the first change in it. */
  readonly sinceChangeMs: number;
  readonly transactions: number;
  readonly elementOperations: number;
  readonly ruleOperations: number;
  readonly bytes: number;
  /** Frontends that changed. */
  readonly frontends: number;
  /** Service ports of some of them. */
  readonly servicePorts: readonly string[];
}

/** What the kernel no longer held as acknowledged, and was put right. */
export interface Repair {
  /** Unique and growing within the family since the start. */
  readonly number: number;
  readonly family: IpFamily;
  readonly at: string;
  /** The author of the external change, as `nft[1234]`; null: not known. */
  readonly process: string | null;
  /** How many differences there were. */
  readonly differences: number;
  /** From when it was seen until it was repaired; null: the periodic comparison found it. */
  readonly seconds: number | null;
  /** Some of them. */
  readonly texts: readonly string[];
}

export interface Failure {
  readonly family: IpFamily;
  /** Since the start. */
  readonly count: number;
  readonly at: string;
  readonly text: string;
  /** Whether the family has been synced since. */
  readonly over: boolean;
}

/** How long something took since the start. */
export interface LatencyHistogram {
  /** `sync`: a sync; `change`: from a change reaching the process to the kernel's acknowledgement. */
  readonly kind: 'sync' | 'change';
  readonly family: IpFamily;
  readonly count: number;
  readonly sumMs: number;
  /** Not cumulative: how many were longer than the bound before and not longer than this one. The last bound is null: any length. */
  readonly buckets: readonly { readonly upToMs: number | null; readonly count: number }[];
}

// ---- Configuration.

export interface Configuration {
  /** Every field of the document in force by its path, such as `nftables.syncPeriod`. */
  readonly fields: readonly ConfigurationField[];
  /** Settings that do not do what one may think, one sentence each; those of a field are at the field as well. */
  readonly warnings: readonly string[];
  /** Every flag as it counts. Credentials are left out. */
  readonly flags: readonly (Pick<ConfigurationField, 'value' | 'initial'> & { readonly name: string })[];
  /** Files that were read; empty: none. */
  readonly files: readonly string[];
  /** Why changed files are not in force; null: they are. */
  readonly refused: string | null;
}

export interface ConfigurationField {
  readonly field: string;
  /** As JSON; of a flag as it is printed. */
  readonly value: string;
  /** The default, where it is another one, empty for none; null: it is the default. */
  readonly initial: string | null;
  /** Why it does nothing; null: it acts. */
  readonly ineffective: string | null;
}

// ---- Live.

/**
 * Server-sent events by name, at `api/events`; the data is JSON. The first event of every connection is `snapshot`, also of one that comes back: nothing is
 * replayed, so the page asks again for the list and the Service that it shows. The same after a slow reader has caught up: what it did not read in time is
 * left out, and a snapshot takes its place. Two a second of a name at most, however much happens; `overview` at least every 5 s. An event may repeat what was
 * in one before: the numbers show it. Ids grow and mean nothing else; `retry` is set by the server.
 */
export interface LiveEvents {
  readonly snapshot: LiveSnapshot;
  readonly overview: Overview;
  readonly services: ServicesChanged;
  readonly syncs: SyncsHappened;
  readonly repairs: { readonly repairs: readonly Repair[] };
  /** Only after {@link Configuration} changed. */
  readonly configuration: Readonly<Record<string, never>>;
}

export interface LiveSnapshot {
  readonly overview: Overview;
  readonly history: History;
}

/** Services whose object, slices or problems changed; ask again for what is shown of them. */
export interface ServicesChanged {
  /** Services by key, at most 200; with `more` any other may have changed, too. */
  readonly keys: readonly string[];
  readonly more: boolean;
  /** Some came or went: rows of lists have moved. */
  readonly membership: boolean;
}

export interface SyncsHappened {
  /** Latest first, as many as {@link History} keeps. */
  readonly syncs: readonly Sync[];
  /** Syncs since the event before that are in none of them. */
  readonly skipped: number;
  readonly latency: readonly LatencyHistogram[];
}
