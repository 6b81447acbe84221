import type { EndpointList } from '../base/endpoint-list.js';
import type { IPAddress } from '../base/ip.js';
import { READY, SERVING, TERMINATING } from '../state/rows.js';
import { has, type Candidate } from './candidates.js';
import type { NodeFacts } from './facts.js';

/** Which of its endpoints a Service port may use on this node (behaviour §4.3). */
export interface Selection {
  /** For traffic under policy Cluster; empty when no traffic of the port is. */
  readonly cluster: EndpointList;
  /** For traffic under policy Local; empty when no traffic of the port is. */
  readonly local: EndpointList;
  /** Whether any endpoint anywhere could serve: decides between reject (no) and drop (yes, but not here). */
  readonly any: boolean;
  /** Every serving endpoint, whatever the policies. */
  readonly serving: EndpointList;
  /** Addresses in `cluster` or `local` of endpoints on this node, or on no node that we know of. */
  readonly hairpin: ReadonlySet<IPAddress>;
  /** Those of them that are on this node. */
  readonly own: ReadonlySet<IPAddress>;
  /** Addresses of endpoints on this node that are ready, whatever the policies (behaviour SH-04). */
  readonly readyHere: ReadonlySet<IPAddress>;
  /** Ports of endpoints that are left out for them; see {@link PolicyUse.onePort}. */
  readonly otherPorts: ReadonlySet<number>;
}

export interface PolicyUse {
  readonly cluster: boolean;
  readonly local: boolean;
  /** Whether a list may have endpoints of one port only: that of most of them, and of several such the smallest (behaviour WK-07). */
  readonly onePort: boolean;
}

/**
 * Why an endpoint is left out: not ready while others are; not serving, or not terminating, where none is ready; hinted for other nodes or other
 * zones; not on this node under policy Local; weight 0; a duplicate; on another port than most, where the platform has one for an address; one
 * more than the platform has for an address; in a zone that gets no connections from this one.
 */
export type Exclusion =
  | 'not-ready'
  | 'not-serving'
  | 'not-terminating'
  | 'node-hint'
  | 'zone-hint'
  | 'other-node'
  | 'no-weight'
  | 'duplicate'
  | 'other-port'
  | 'over-limit'
  | 'zone-share';

/** One condition that endpoints have to meet, and the reason to give for those that do not. */
export interface Rule {
  readonly excludes: Exclusion;
  readonly admits: (candidate: Candidate) => boolean;
}

export function admitted(candidate: Candidate, rules: readonly Rule[]): boolean {
  return rules.every(({ admits }) => admits(candidate));
}

/** Whom the rules need to know of: how many there are, each once. */
export class Tally {
  private ready = 0;
  private readyHere = 0;
  private able = 0;
  private readonly hinted = { nodes: 0, here: 0, zones: 0, hereabouts: 0 };

  constructor(private readonly node: NodeFacts) {}

  static of(candidates: readonly Candidate[], node: NodeFacts): Tally {
    const tally = new Tally(node);
    for (const candidate of candidates) tally.add(candidate, 1);
    return tally;
  }

  add(candidate: Candidate, amount: 1 | -1): void {
    const isReady = IS_READY.admits(candidate);
    if (isReady || (has(candidate, SERVING) && has(candidate, TERMINATING))) this.able += amount;
    if (!isReady) return;
    const { zoneHints, nodeHints } = candidate;
    const { name, zone } = this.node;
    this.ready += amount;
    if (candidate.nodeName === name) this.readyHere += amount;
    if (nodeHints.length > 0) this.hinted.nodes += amount;
    if (nodeHints.includes(name)) this.hinted.here += amount;
    if (zoneHints.length > 0) this.hinted.zones += amount;
    if (zone !== null && zoneHints.includes(zone)) this.hinted.hereabouts += amount;
  }

  /** Whether any of them could serve: one that is ready, or terminates and still serves. */
  get anyAble(): boolean {
    return this.able > 0;
  }

  /**
   * Which of {@link clusterRules} hold: those of readiness alone, or of hints too. Topology counts only where every ready endpoint has a hint and some name
   * us; hints for nodes come before hints for zones.
   */
  get clusterMode(): ClusterMode {
    const { ready, hinted } = this;
    if (ready === 0) return 'last-resort';
    if (hinted.nodes === ready && hinted.here > 0) return 'node';
    return hinted.zones === ready && hinted.hereabouts > 0 ? 'zone' : 'ready';
  }

  get localMode(): LocalMode {
    return this.readyHere > 0 ? 'ready' : 'last-resort';
  }
}

export type LocalMode = 'last-resort' | 'ready';
export type ClusterMode = LocalMode | 'node' | 'zone';

const IS_READY: Rule = { excludes: 'not-ready', admits: (candidate) => has(candidate, READY) };

/** Where nothing is ready: endpoints that are terminating and still serve (KEP-1669). */
const LAST_RESORT: readonly Rule[] = [
  { excludes: 'not-serving', admits: (candidate) => has(candidate, SERVING) },
  { excludes: 'not-terminating', admits: (candidate) => has(candidate, TERMINATING) },
];

/** After all else: an endpoint that gets no new connections has none to give to those that readiness and policies leave out. */
const HAS_WEIGHT: Rule = { excludes: 'no-weight', admits: ({ weight }) => weight > 0 };

/** What endpoints have to meet for traffic under policy Cluster. */
export function clusterRules(mode: ClusterMode, { name, zone }: NodeFacts): readonly Rule[] {
  switch (mode) {
    case 'last-resort':
      return [...LAST_RESORT, HAS_WEIGHT];
    case 'ready':
      return [IS_READY, HAS_WEIGHT];
    case 'node':
      return [IS_READY, { excludes: 'node-hint', admits: ({ nodeHints }) => nodeHints.includes(name) }, HAS_WEIGHT];
    case 'zone':
      return [
        IS_READY,
        { excludes: 'zone-hint', admits: ({ zoneHints }) => zoneHints.includes(zone ?? '') },
        HAS_WEIGHT,
      ];
  }
}

/** What endpoints have to meet for traffic under policy Local, to which topology never applies. */
export function localRules(mode: LocalMode, { name }: NodeFacts): readonly Rule[] {
  const onNode: Rule = { excludes: 'other-node', admits: ({ nodeName }) => nodeName === name };
  return [onNode, ...(mode === 'ready' ? [IS_READY] : LAST_RESORT), HAS_WEIGHT];
}
