import type { Family } from '../base/ip.js';
import type { PackedAddress } from '../base/pack-address.js';
import type { LoopbackConnections, LoopbackTable } from '../control/loopback.js';
import type { ServiceEndpoint } from '../plan/known-departures.js';
import type { ObjectKey, TableChange } from '../plan/types.js';
import type { NodePortListeners, NodePortListenersOptions } from './node-port-listeners.js';

const ALL = { frontends: new Set<string>(), node: true };

/** Loads the listeners' code with the first plan that has some: few nodes do. */
export class LazyNodePortListeners implements LoopbackConnections {
  private listeners: NodePortListeners | null = null;
  private loading: Promise<void> | null = null;

  constructor(private readonly options: NodePortListenersOptions) {}

  sync(table: LoopbackTable, change: Pick<TableChange, 'frontends' | 'node'>): void {
    if (this.listeners !== null) this.listeners.sync(table, change);
    else if (table.node.nodePortListener) void this.load().then(() => this.listeners?.sync(table, ALL));
  }

  endpoints(family: Family): Iterable<ServiceEndpoint> {
    return this.listeners?.endpoints(family) ?? [];
  }

  failures(family: Family): readonly string[] {
    return this.listeners?.failures(family) ?? [];
  }

  reset(family: Family, gone: ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>>): number {
    return this.listeners?.reset(family, gone) ?? 0;
  }

  async close(): Promise<void> {
    await this.loading;
    this.listeners?.close();
  }

  private load(): Promise<void> {
    this.loading ??= import('./node-port-listeners.js').then(
      ({ NodePortListeners }) => {
        this.listeners = new NodePortListeners(this.options);
      },
      (error: unknown) => {
        this.options.log.error(error, 'node ports on loopback cannot be served');
      },
    );
    return this.loading;
  }
}
