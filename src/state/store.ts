import { FAMILIES, type Family } from '../base/ip.js';
import { KindTable, type TableEdit } from './kind-table.js';
import { Readiness } from './readiness.js';
import {
  objectKey,
  type EndpointSliceRow,
  type NodeRow,
  type ObjectKey,
  type Row,
  type RowRef,
  type ServiceCIDRRow,
  type ServiceRow,
} from './rows.js';
import { SliceIndex } from './slice-index.js';
import type { Snapshot, StateChanges } from './snapshot.js';
import type { SourceWriter, StateChange, Writer } from './writer.js';

/** One row that a commit changed. */
export type RowEdit = TableEdit<Row>;

/** Is called after a commit; `receivedAt` as in {@link SourceWriter.apply}. */
export type ChangeListener = (edits: readonly RowEdit[], receivedAt: number | null) => void;

const NO_EDITS: readonly RowEdit[] = [];

function noServices(): Record<Family, Set<ObjectKey>> {
  return { IPv4: new Set(), IPv6: new Set() };
}

/**
 * What the sources have reported, and what of it changed since the last {@link takeChanges}. The cost of a commit is proportional to the rows in it
 * and to the slices of the Services they belong to, never to the cluster.
 */
export class Store implements Writer {
  private readonly services = new KindTable<ServiceRow>();
  private readonly slices = new KindTable<EndpointSliceRow>();
  private readonly sliceIndex = new SliceIndex();
  private readonly nodes = new KindTable<NodeRow>();
  private readonly serviceCIDRs = new KindTable<ServiceCIDRRow>();
  private sortedServiceCIDRs: readonly ServiceCIDRRow[] = [];
  private readonly readiness = new Readiness();
  private listeners: readonly ChangeListener[] = [];
  private changedServices = noServices();
  private changedNodes = new Set<string>();
  private changedServiceCIDRs = false;
  /** Readiness as of the last {@link takeChanges}. */
  private takenReady = false;

  readonly snapshot: Snapshot = this.view();

  register(source: string): SourceWriter {
    const wasReady = this.readiness.ready;
    const number = this.readiness.register(source);
    if (wasReady) this.notify(NO_EDITS);
    return {
      apply: (changes, receivedAt = null) => {
        const edits = this.commit(number, changes);
        if (edits.length > 0) this.notify(edits, receivedAt);
      },
      complete: () => {
        const before = this.readiness.ready;
        this.readiness.complete(number);
        if (this.readiness.ready !== before) this.notify(NO_EDITS);
      },
      unsynced: (present) => {
        const before = this.readiness.unsynced;
        this.readiness.setUnsynced(number, present);
        if (this.readiness.unsynced !== before) this.notify(NO_EDITS);
      },
    };
  }

  /**
   * Calls `listener` once after each commit that changed something, with its edits in the order of the commit. When readiness changes it calls with no edits.
   * The returned function ends the calls.
   */
  onChange(listener: ChangeListener): () => void {
    this.listeners = [...this.listeners, listener];
    return () => {
      this.listeners = this.listeners.filter((other) => other !== listener);
    };
  }

  takeChanges(): StateChanges {
    const changes: StateChanges = {
      services: this.changedServices,
      nodes: this.changedNodes,
      serviceCIDRs: this.changedServiceCIDRs,
      ready: this.readiness.ready !== this.takenReady,
    };
    this.changedServices = noServices();
    this.changedNodes = new Set();
    this.changedServiceCIDRs = false;
    this.takenReady = this.readiness.ready;
    return changes;
  }

  /** Names of the sources that readiness waits for. */
  waitingFor(): readonly string[] {
    return this.readiness.waitingFor();
  }

  private view(): Snapshot {
    const { services, slices, nodes, readiness, sliceIndex } = this;
    return {
      service: (key) => services.get(key),
      services: () => services.rows(),
      get serviceCount() {
        return services.size;
      },
      slicesOf: (service) => sliceIndex.of(service),
      slices: () => slices.rows(),
      node: (name) => nodes.get(name),
      serviceCIDRs: () => this.sortedServiceCIDRs,
      get ready() {
        return readiness.ready;
      },
      get unsynced() {
        return readiness.unsynced;
      },
    };
  }

  private commit(source: number, changes: readonly StateChange[]): readonly RowEdit[] {
    const edits: RowEdit[] = [];
    let cidrsChanged = false;
    for (const change of changes) {
      const edit =
        change.type === 'upsert' ? this.upsert(source, change.row, change.key) : this.remove(source, change.ref);
      if (edit === null) continue;
      edits.push(edit);
      if ((edit.after ?? edit.before)?.kind === 'ServiceCIDR') cidrsChanged = true;
    }
    this.sliceIndex.seal();
    if (cidrsChanged) {
      this.changedServiceCIDRs = true;
      this.sortedServiceCIDRs = [...this.serviceCIDRs.rows()].sort((one, other) => (one.name < other.name ? -1 : 1));
    }
    return edits;
  }

  /** Null when the state did not change; as {@link remove}. */
  private upsert(source: number, row: Row, key: ObjectKey | undefined): RowEdit | null {
    switch (row.kind) {
      case 'Service':
        return this.setService(source, key ?? objectKey(row.namespace, row.name), row);
      case 'EndpointSlice':
        return this.setSlice(source, key ?? objectKey(row.namespace, row.name), row);
      case 'Node':
        return this.setNode(source, row.name, row);
      case 'ServiceCIDR':
        return this.serviceCIDRs.set(row.name, source, row);
    }
  }

  private remove(source: number, { kind, namespace, name }: RowRef): RowEdit | null {
    switch (kind) {
      case 'Service':
        return this.setService(source, objectKey(namespace, name), null);
      case 'EndpointSlice':
        return this.setSlice(source, objectKey(namespace, name), null);
      case 'Node':
        return this.setNode(source, name, null);
      case 'ServiceCIDR':
        return this.serviceCIDRs.set(name, source, null);
    }
  }

  private setService(source: number, key: ObjectKey, row: ServiceRow | null): RowEdit | null {
    const edit = this.services.set(key, source, row);
    if (edit !== null) for (const family of FAMILIES) this.changedServices[family].add(key);
    return edit;
  }

  private setNode(source: number, name: string, row: NodeRow | null): RowEdit | null {
    const edit = this.nodes.set(name, source, row);
    if (edit !== null) this.changedNodes.add(name);
    return edit;
  }

  private setSlice(source: number, key: ObjectKey, row: EndpointSliceRow | null): RowEdit | null {
    const edit = this.slices.set(key, source, row);
    if (edit === null) return null;
    const { before, after } = edit;
    const stays = before?.namespace === after?.namespace && before?.serviceName === after?.serviceName;
    if (before !== null && !(stays && before.family === after?.family)) {
      const service = objectKey(before.namespace, before.serviceName);
      this.changedServices[before.family].add(service);
      if (!stays) this.sliceIndex.remove(service, before);
    }
    if (after !== null) {
      const service = objectKey(after.namespace, after.serviceName);
      this.changedServices[after.family].add(service);
      this.sliceIndex.put(service, after);
    }
    return edit;
  }

  private notify(edits: readonly RowEdit[], receivedAt: number | null = null): void {
    for (const listener of this.listeners) listener(edits, receivedAt);
  }
}
