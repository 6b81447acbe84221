import type { Family } from '../base/ip.js';
import type { SourceState } from './metrics.js';
import type { Observation } from './observations.js';

/** What observations of the process itself are made of. */
export interface ProcessFacts {
  /** Since the start, in milliseconds. */
  readonly uptimeMs: number;
  readonly sources: readonly SourceState[];
  /** Why the API server answers no request now, as {@link SourceState.trouble}; null: it does, or was not asked. */
  readonly apiServer: string | null;
  /** Names of those of the state that have not reported all they had at the start. */
  readonly waitingFor: readonly string[];
  /** Why changed configuration files are not in force; null: they are. */
  readonly refusedConfiguration: string | null;
  /** Since when, in seconds; null: they are. */
  readonly refusedSeconds: number | null;
  /** Of families whose last sync failed: why. */
  readonly failures: readonly { readonly family: Family; readonly reason: string }[];
}

/** What keeps the process from reading objects or writing rules. */
export function observeProcess(facts: ProcessFacts): readonly Observation[] {
  return [...ofApi(facts), ...ofConfiguration(facts), ...ofSyncs(facts)];
}

/** A server that has answered nothing for so long after the start hangs. */
const FIRST_ANSWER_MS = 5000;
/** The API server sends a bookmark about every minute. */
const SILENT_MS = 100_000;

const SERVICE_CIDRS = 'servicecidrs';

/** One for each reason, with the resources that have it. */
function ofApi(facts: ProcessFacts): readonly Observation[] {
  const reasons = new Map<string, string[]>();
  for (const state of facts.sources) {
    const reason = problemOf(state, facts);
    if (reason !== null) reasons.set(reason, [...(reasons.get(reason) ?? []), state.source]);
  }
  return [...reasons].map(([reason, resources]) => ({
    kind: 'api-server',
    // Without ServiceCIDRs every Service is served; clusters before 1.33 have none.
    severity: resources.some((each) => each !== SERVICE_CIDRS) ? 'warning' : 'note',
    text: `${resources.join(', ')} cannot be read from the API server, what was read stays in use: ${reason}`,
    remedy: API_REMEDIES[reason.split(':', 1)[0] ?? ''] ?? 'see the log of the API server; it is retried',
  }));
}

function problemOf(
  { source, sinceLastEventMs, trouble, isWatched, received }: SourceState,
  { uptimeMs, waitingFor, apiServer }: ProcessFacts,
): string | null {
  if (trouble === undefined) return null;
  if (trouble !== null) return trouble;
  const isAwaited = waitingFor.includes(`kubernetes ${source}`);
  if (isAwaited && received === 0 && uptimeMs >= FIRST_ANSWER_MS)
    return `silent: no answer in the ${Math.floor(uptimeMs / 1000)} s since the start`;
  if (apiServer !== null) return apiServer;
  if (isWatched === true && sinceLastEventMs !== null && sinceLastEventMs >= SILENT_MS)
    return `silent: nothing received for ${Math.floor(sinceLastEventMs / 1000)} s`;
  return null;
}

const UNREACHABLE =
  'check that it runs and is reachable from here: curl -k URL/livez with the URL of clientConnection.kubeconfig, or of --master';

/** By the kind that a reason begins with. */
const API_REMEDIES: Readonly<Record<string, string>> = {
  unauthorized:
    'give clientConnection.kubeconfig a token or certificate that the API server accepts (kubectl --kubeconfig FILE auth whoami)',
  forbidden:
    'grant get, list and watch of it: bind the ClusterRole system:node-proxier to this user (kubectl auth can-i list services --as USER)',
  unavailable: UNREACHABLE,
  silent: UNREACHABLE,
  throttled: 'the API server has too many requests: see its priority and fairness (kubectl get flowschemas)',
};

function ofConfiguration({ refusedConfiguration, refusedSeconds }: ProcessFacts): readonly Observation[] {
  if (refusedConfiguration === null) return [];
  const time = refusedSeconds === null ? '' : ` for ${Math.floor(refusedSeconds)} s`;
  return [
    {
      kind: 'configuration',
      severity: 'warning',
      text: `changed configuration files are refused${time}, the former configuration is in force: ${refusedConfiguration}`,
      remedy: 'correct the file; it is reread on change',
    },
  ];
}

/** Families that fail alike are named together. */
function ofSyncs({ failures }: ProcessFacts): readonly Observation[] {
  const reasons = new Map<string, Family[]>();
  for (const { family, reason } of failures) reasons.set(reason, [...(reasons.get(reason) ?? []), family]);
  return [...reasons].map(([reason, families]) => ({
    kind: 'sync',
    severity: 'warning',
    text: `rules of ${families.join(' and ')} cannot be written, the existing ones stay: ${reason}`,
    remedy: remedyOf(reason),
  }));
}

function remedyOf(reason: string): string {
  if (/owns the table/.test(reason))
    return 'end that process (its id is often its netlink port: ps -p PORT); the rules follow within seconds';
  if (/EPERM|EACCES|Permission denied|not permitted/i.test(reason))
    return 'run it as root with CAP_NET_ADMIN (securityContext: capabilities.add: ["NET_ADMIN"], or privileged)';
  if (/EOPNOTSUPP|EPROTONOSUPPORT|EAFNOSUPPORT|No such file or directory/.test(reason))
    return 'check that this kernel has the modules of the mode (docs/kernels.md), or set another mode';
  return 'see the log; it is retried';
}
