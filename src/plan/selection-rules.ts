import type { EndpointList } from '../base/endpoint-list.js';
import type { IPAddress } from '../base/ip.js';
import { READY, SERVING, TERMINATING, type EndpointSliceRow } from '../state/rows.js';
import type { NodeFacts } from './facts.js';

/** Which of its endpoints a Service port may use on this node (behaviour §4.3). Lists that are the same are one. */
export interface Selection {
  /** For traffic under policy Cluster; empty when no traffic of the port is. */
  readonly cluster: EndpointList;
  /** For traffic under policy Local; empty when no traffic of the port is. */
  readonly local: EndpointList;
  /** Whether any endpoint anywhere could serve: decides between reject (no) and drop (yes, but not here). */
  readonly any: boolean;
  /** Every serving endpoint, independent of policies. */
  readonly serving: EndpointList;
  /** Addresses in `cluster` or `local` of endpoints on this node, or on no node that we know of. */
  readonly hairpin: ReadonlySet<IPAddress>;
  /** Those of them that are on this node. */
  readonly own: ReadonlySet<IPAddress>;
  /** Addresses of endpoints on this node that are ready, independent of policies (behaviour SH-04). */
  readonly readyHere: ReadonlySet<IPAddress>;
  /** Ports of endpoints that are left out for them; see {@link PolicyUse.onePort}. */
  readonly otherPorts: ReadonlySet<number>;
}

export interface PolicyUse {
  readonly cluster: boolean;
  readonly local: boolean;
  /** Whether a list may have endpoints of one port only: the most frequent port, and the smallest of several (behaviour WK-07). */
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

type LocalMode = 'last-resort' | 'ready';
type ClusterMode = LocalMode | 'node' | 'zone';

/** Which conditions endpoints have to meet for traffic under either policy. */
export interface SelectionModes {
  readonly cluster: ClusterMode;
  readonly local: LocalMode;
}

/** Terminating endpoints that still serve (KEP-1669). */
const STILL_SERVES = SERVING | TERMINATING;
const NO_HINTS: readonly string[] = [];

/** The basis of the modes: how many endpoints of a port there are of each kind, each once. */
export class Tally {
  private ready = 0;
  private readyHere = 0;
  private able = 0;
  /** Ready endpoints with hints for nodes, for this one, for zones, and for this node's. */
  private nodes = 0;
  private thisNode = 0;
  private zones = 0;
  private thisZone = 0;

  constructor(private readonly node: NodeFacts) {}

  /** @param amount -1: the endpoint is gone. */
  add(slice: EndpointSliceRow, index: number, amount: 1 | -1): void {
    const conditions = slice.conditions[index] ?? 0;
    const isReady = (conditions & READY) !== 0;
    if (isReady || (conditions & STILL_SERVES) === STILL_SERVES) this.able += amount;
    if (!isReady) return;
    const { name, zone } = this.node;
    this.ready += amount;
    if (slice.nodeNames[index] === name) this.readyHere += amount;
    if (slice.nodeHints !== null) {
      const hints = slice.nodeHints[index] ?? NO_HINTS;
      if (hints.length > 0) this.nodes += amount;
      if (hints.includes(name)) this.thisNode += amount;
    }
    if (slice.zoneHints !== null) {
      const hints = slice.zoneHints[index] ?? NO_HINTS;
      if (hints.length > 0) this.zones += amount;
      if (zone !== null && hints.includes(zone)) this.thisZone += amount;
    }
  }

  /** Whether any of them could serve: one that is ready, or terminates and still serves. */
  get anyAble(): boolean {
    return this.able > 0;
  }

  get modes(): SelectionModes {
    return { cluster: this.clusterMode, local: this.readyHere > 0 ? 'ready' : 'last-resort' };
  }

  /**
   * Readiness alone, or hints too. Topology counts only where every ready endpoint has a hint and some hint names this node or
   * zone; hints for nodes come before hints for zones.
   */
  private get clusterMode(): ClusterMode {
    const { ready } = this;
    if (ready === 0) return 'last-resort';
    if (this.nodes === ready && this.thisNode > 0) return 'node';
    return this.zones === ready && this.thisZone > 0 ? 'zone' : 'ready';
  }
}

/** Why an endpoint gets no traffic under policy Cluster; null: it does. */
export function clusterExclusion(
  mode: ClusterMode,
  { name, zone }: NodeFacts,
  slice: EndpointSliceRow,
  index: number,
): Exclusion | null {
  const unfit = unready(mode, slice.conditions[index] ?? 0);
  if (unfit !== null) return unfit;
  if (mode === 'node' && slice.nodeHints?.[index]?.includes(name) !== true) return 'node-hint';
  if (mode === 'zone' && slice.zoneHints?.[index]?.includes(zone ?? '') !== true) return 'zone-hint';
  return weightless(slice);
}

/** The same under policy Local, to which topology never applies. */
export function localExclusion(
  mode: LocalMode,
  { name }: NodeFacts,
  slice: EndpointSliceRow,
  index: number,
): Exclusion | null {
  if (slice.nodeNames[index] !== name) return 'other-node';
  return unready(mode, slice.conditions[index] ?? 0) ?? weightless(slice);
}

function unready(mode: ClusterMode, conditions: number): Exclusion | null {
  if (mode !== 'last-resort') return (conditions & READY) === 0 ? 'not-ready' : null;
  if ((conditions & SERVING) === 0) return 'not-serving';
  return (conditions & TERMINATING) === 0 ? 'not-terminating' : null;
}

/** Applied last: an endpoint without new connections passes none to endpoints that readiness and policies leave out. */
function weightless({ weight }: EndpointSliceRow): Exclusion | null {
  return weight === 0 ? 'no-weight' : null;
}
