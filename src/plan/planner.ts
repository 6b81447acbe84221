import { FAMILIES, type Family } from '../base/ip.js';
import { objectKey, type ObjectKey } from '../state/rows.js';
import type { Snapshot, StateChanges } from '../state/snapshot.js';
import { nodeFacts, sameFacts, type NodeFacts, type PlanSettings } from './facts.js';
import { ForwardingTable } from './forwarding-table.js';
import { planNode } from './node-plan.js';
import { planService } from './service-plan.js';

/**
 * Keeps both families' forwarding tables in step with the state. A Service is planned again in the families in which it changed; all of a family's
 * when what they depend on of this node changes. The tables are the same as if everything were planned anew.
 */
export class Planner {
  readonly tables: Readonly<Record<Family, ForwardingTable>>;
  private facts: NodeFacts;
  /** Settings changed since the last update: everything is planned again. */
  private stale = false;

  constructor(private settings: PlanSettings) {
    this.facts = nodeFacts(settings, undefined);
    const table = (family: Family): ForwardingTable => new ForwardingTable(planNode(family, settings, undefined, []));
    this.tables = { IPv4: table('IPv4'), IPv6: table('IPv6') };
  }

  /** Other settings for the same node, from the next update on. */
  setSettings(settings: PlanSettings): void {
    this.settings = settings;
    this.stale = true;
  }

  update(snapshot: Snapshot, changes: StateChanges): void {
    const { stale } = this;
    this.stale = false;
    if (stale || changes.nodes.has(this.settings.nodeName) || changes.serviceCIDRs) this.updateNode(snapshot);
    const facts = nodeFacts(this.settings, snapshot.node(this.settings.nodeName));
    const before = this.facts;
    this.facts = facts;
    for (const family of FAMILIES) {
      this.tables[family].gaps = snapshot.gaps;
      const changed = changes.services[family];
      const keys = stale || !sameFacts(family, facts, before) ? withAll(snapshot, changed) : changed;
      for (const key of keys) this.planService(family, snapshot, key);
    }
  }

  private updateNode(snapshot: Snapshot): void {
    const node = snapshot.node(this.settings.nodeName);
    for (const family of FAMILIES) {
      this.tables[family].setNode(planNode(family, this.settings, node, snapshot.serviceCIDRs()));
    }
  }

  private planService(family: Family, snapshot: Snapshot, key: ObjectKey): void {
    const service = snapshot.service(key);
    const plan =
      service === undefined ? null : planService(family, service, snapshot.slicesOf(key), this.facts, this.settings);
    this.tables[family].setService(key, plan);
  }
}

/** All Services, and those that are gone. */
function withAll(snapshot: Snapshot, changed: ReadonlySet<ObjectKey>): ReadonlySet<ObjectKey> {
  const keys = new Set(changed);
  for (const { namespace, name } of snapshot.services()) keys.add(objectKey(namespace, name));
  return keys;
}
