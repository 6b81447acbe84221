import { KindTable } from './kind-table.js';
import { Readiness } from './readiness.js';
import {
  objectKey,
  refOf,
  type EndpointSliceRow,
  type NodeRow,
  type ObjectKey,
  type Row,
  type RowRef,
  type ServiceCIDRRow,
  type ServiceRow,
} from './rows.js';
import { serviceOf, SliceIndex } from './slice-index.js';
import type { Snapshot, StateChanges } from './snapshot.js';
import type { SourceWriter, StateChange, Writer } from './writer.js';

/**
 * What the sources have said, and what of it changed since somebody last asked. The cost of a commit is proportional to the rows in it
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
  private readonly listeners: (() => void)[] = [];
  private changedServices = new Set<ObjectKey>();
  private changedNodes = new Set<string>();
  private changedServiceCIDRs = false;
  /** Readiness as of the last {@link takeChanges}. */
  private takenReady = false;

  readonly snapshot: Snapshot = this.view();

  register(source: string): SourceWriter {
    const wasReady = this.readiness.ready;
    const number = this.readiness.register(source);
    if (wasReady) this.notify();
    return {
      apply: (changes) => {
        if (this.commit(number, changes)) this.notify();
      },
      complete: () => {
        const before = this.readiness.ready;
        this.readiness.complete(number);
        if (this.readiness.ready !== before) this.notify();
      },
    };
  }

  /** Calls `listener` once after each commit that changed something, and when readiness changes. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  takeChanges(): StateChanges {
    const changes: StateChanges = {
      services: this.changedServices,
      nodes: this.changedNodes,
      serviceCIDRs: this.changedServiceCIDRs,
      ready: this.readiness.ready !== this.takenReady,
    };
    this.changedServices = new Set();
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
    const { services, nodes, readiness, sliceIndex } = this;
    return {
      service: (key) => services.get(key),
      services: () => services.rows(),
      slicesOf: (service) => sliceIndex.of(service),
      node: (name) => nodes.get(name),
      serviceCIDRs: () => this.sortedServiceCIDRs,
      get ready() {
        return readiness.ready;
      },
    };
  }

  private commit(source: number, changes: readonly StateChange[]): boolean {
    let changed = false;
    let cidrsChanged = false;
    for (const change of changes) {
      const edited =
        change.type === 'upsert' ? this.set(source, refOf(change.row), change.row) : this.set(source, change.ref, null);
      if (!edited) continue;
      changed = true;
      if ((change.type === 'upsert' ? change.row : change.ref).kind === 'ServiceCIDR') cidrsChanged = true;
    }
    this.sliceIndex.seal();
    if (cidrsChanged) {
      this.changedServiceCIDRs = true;
      this.sortedServiceCIDRs = [...this.serviceCIDRs.rows()].sort((one, other) => (one.name < other.name ? -1 : 1));
    }
    return changed;
  }

  /** Whether the state changed. */
  private set(source: number, { kind, namespace, name }: RowRef, row: Row | null): boolean {
    switch (kind) {
      case 'Service':
        return this.setService(source, objectKey(namespace, name), row?.kind === kind ? row : null);
      case 'EndpointSlice':
        return this.setSlice(source, objectKey(namespace, name), row?.kind === kind ? row : null);
      case 'Node':
        if (this.nodes.set(name, source, row?.kind === kind ? row : null) === null) return false;
        this.changedNodes.add(name);
        return true;
      case 'ServiceCIDR':
        return this.serviceCIDRs.set(name, source, row?.kind === kind ? row : null) !== null;
    }
  }

  private setService(source: number, key: ObjectKey, row: ServiceRow | null): boolean {
    if (this.services.set(key, source, row) === null) return false;
    this.changedServices.add(key);
    return true;
  }

  private setSlice(source: number, key: ObjectKey, row: EndpointSliceRow | null): boolean {
    const edit = this.slices.set(key, source, row);
    if (edit === null) return false;
    const { before, after } = edit;
    if (before !== null) {
      this.changedServices.add(serviceOf(before));
      if (after === null || serviceOf(after) !== serviceOf(before)) this.sliceIndex.remove(before);
    }
    if (after !== null) {
      this.changedServices.add(serviceOf(after));
      this.sliceIndex.put(after);
    }
    return true;
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
