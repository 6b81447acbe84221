import type { Overview } from './api.js';

/**
 * What `pointsman nodes` asks the proxy of each node, below the page of that node. The page itself asks none of it. Both ends are of one release more often than not, but
 * not while nodes are being updated: fields are added, and none gets another meaning.
 */

/** The resources whose versions are compared, as in the API's path: the Node is each node's own. */
export const COMPARED_RESOURCES = ['services', 'endpointslices'] as const;

/** GET `api/node`. */
export interface NodeAnswer {
  readonly overview: Overview;
  /** Since when a change waits for the kernel; null: none does. */
  readonly pendingMs: number | null;
  /** What is held of the API server, by resource; empty: nothing is read from there. */
  readonly held: readonly HeldResource[];
  /** Problems of Services, {@link MAX_NODE_PROBLEMS} at most. */
  readonly problems: readonly NodeProblem[];
  readonly moreProblems: number;
}

/** In which versions the objects of a resource are held. */
export interface HeldResource {
  readonly resource: (typeof COMPARED_RESOURCES)[number];
  readonly count: number;
  /** As of `VersionDigest`. */
  readonly sums: readonly number[];
}

export interface NodeProblem {
  /** `namespace/name`; the frontend where no Service has it any more. */
  readonly service: string;
  readonly problem: 'unplanned' | 'quarantined' | 'conflict';
  /** In a sentence, the same on all nodes where it is the same. */
  readonly text: string;
}

export const MAX_NODE_PROBLEMS = 200;

/** GET `api/versions?resource=…&part=…`: one part of a digest. */
export interface VersionsAnswer {
  /** Versions by `namespace/name`. */
  readonly versions: Readonly<Record<string, string>>;
}
