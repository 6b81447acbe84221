/** What `pointsman nodes -o json` prints, and what the page of `--ui` is answered at `api/nodes`: types alone, which import nothing, so that the page's project can have them. */

/** How a node's proxy is doing, the worst first. */
export type NodeState = 'no-proxy' | 'no-answer' | 'unhealthy' | 'differs' | 'lags' | 'in-step';

/** One node of `pointsman nodes -o json`. */
export interface NodeRow {
  readonly node: string;
  readonly state: NodeState;
  /** Null: it has none. */
  readonly pod: string | null;
  /** What its proxy reports of itself; null: it gave no answer. */
  readonly proxy: ProxySummary | null;
  /** Whether its health checks report it as healthy, where nothing else could be asked; null: not asked, or no answer. */
  readonly healthCheck: boolean | null;
  /** Why it is in this state, and what else is not as it should be, in sentences. */
  readonly why: readonly string[];
  /** Objects that it holds in another version than the API server; of many some. */
  readonly differences: readonly Difference[];
  readonly moreDifferences: boolean;
}

export interface ProxySummary {
  readonly release: string;
  readonly mode: string;
  readonly startedAt: string;
  readonly services: number;
  /** Problems of Services, of all kinds. */
  readonly problems: number;
}

/** A problem of a Service, with all nodes that have it. */
export interface ServiceAcross {
  /** `namespace/name`; the frontend where no Service has it any more. */
  readonly service: string;
  readonly problem: 'unplanned' | 'quarantined' | 'conflict';
  /** In a sentence. */
  readonly text: string;
  readonly nodes: readonly string[];
}

/** What `pointsman nodes -o json` prints. */
export interface NodesReport {
  /** RFC 3339. */
  readonly at: string;
  readonly counts: Readonly<Record<NodeState, number>>;
  /** The worst first. */
  readonly nodes: readonly NodeRow[];
  /** Services of the proxies that gave an answer, the most widespread first. */
  readonly services: readonly ServiceAcross[];
}

/** An object that a node holds in another version than the API server. */
export interface Difference {
  readonly resource: 'services' | 'endpointslices';
  /** `namespace/name`. */
  readonly object: string;
  /** Version on the node; null: it does not hold it. */
  readonly held: string | null;
  /** The API server's version; null: it is gone. */
  readonly actual: string | null;
}
