import type { EventRecorder } from '../../base/events.js';
import { LineLimit } from '../../base/line-limit.js';
import type { Log } from '../../base/log.js';
import type { SourceTracing } from '../../base/tracing.js';
import type { SourceWriter, Writer } from '../../state/writer.js';
import { Interner } from '../translate/intern.js';
import { acceptHeader } from './codec/codec.js';
import type { ApiConnection } from './connection.js';
import { ENDPOINT_SLICES, nodeResource, SERVICE_CIDRS, SERVICES, type Resource } from './resources.js';
import type { Dependencies } from './timing.js';
import { ApiExchanger, type Exchanger } from './watch/exchange.js';
import { Inventory } from './watch/inventory.js';
import { Reflector } from './watch/reflector.js';
import { ServiceCIDRList } from './watch/service-cidrs.js';
import type { ResourceStatus } from './watch/status.js';

export interface KubernetesOptions {
  readonly connection: ApiConnection;
  /** The Node whose object is watched. */
  readonly nodeName: string;
  /** clientConnection.contentType; empty for protobuf. */
  readonly contentType: string;
  /** clientConnection.acceptContentTypes, the whole Accept header when it is not empty. */
  readonly acceptContentTypes: string;
  /** configSyncPeriod in milliseconds: how often unknown state is requested again, and ServiceCIDRs are listed. */
  readonly configSyncPeriodMs: number;
  /**
   * Whether readiness waits until the Node has been read, as it must where pod CIDRs are taken from it. Otherwise the first attempt is waited for,
   * however it ends (behaviour WA-12).
   */
  readonly nodeRequired: boolean;
  /** Notified of objects that cannot be used. */
  readonly events: EventRecorder;
  /** Follows changes. */
  readonly tracing?: SourceTracing;
  /** Called once, when the Node has been read, or there is none. */
  readonly nodeRead?: () => void;
  /** One that has stopped, whose place this takes: what it read stays until this one has read all of the resource, and what is the same changes nothing. */
  readonly former?: RunningKubernetes;
}

export interface RunningKubernetes {
  /** Ends every request; resolves when nothing more will be applied. The connection stays open. */
  stop(): Promise<void>;
  /** One entry per resource: services, endpointslices, nodes, servicecidrs. */
  status(): readonly ResourceStatus[];
  /** Call it after {@link stop}, when no other source takes its place: it takes back everything that the source has read. */
  withdraw(): void;
  /** What was read, by resource. */
  readonly holdings: ReadonlyMap<string, Holding>;
}

/** A resource as the state has it. */
interface Holding {
  readonly writer: SourceWriter;
  readonly inventory: Inventory;
}

/**
 * Reads Services, EndpointSlices, our Node and ServiceCIDRs from the API server and follows their changes. Each resource registers as a
 * source of its own, named after it, and reports complete at its initial sync. Uses three connections at most.
 */
export function startKubernetes(
  options: KubernetesOptions,
  writer: Writer,
  log: Log,
  dependencies: Dependencies,
): RunningKubernetes {
  const start = new Start(options, writer, log, dependencies);
  const services = start.reflector(SERVICES, true);
  const slices = start.reflector(ENDPOINT_SLICES, true);
  const cidrs = start.serviceCIDRs();
  // The Node's connection carries the lists of ServiceCIDRs while no watch of the Node is open.
  const node = start.reflector(nodeResource(options.nodeName), options.nodeRequired, (signal, isFailing) =>
    cidrs.refresh(signal, isFailing),
  );
  const reflectors = [services, slices, node];
  for (const reflector of reflectors) reflector.start();
  return {
    stop: async () => {
      await Promise.all(reflectors.map((reflector) => reflector.stop()));
    },
    status: () => [...reflectors.map((reflector) => reflector.status()), cidrs.status()],
    ...start.held(),
  };
}

/** Reads our Node alone, and follows it. */
export function watchNode(
  options: KubernetesOptions,
  writer: Writer,
  log: Log,
  dependencies: Dependencies,
): RunningKubernetes {
  const start = new Start(options, writer, log, dependencies);
  const reflector = start.reflector(nodeResource(options.nodeName), true);
  reflector.start();
  return { stop: () => reflector.stop(), status: () => [reflector.status()], ...start.held() };
}

class Start {
  /** Neither codec makes strings that are windows on others. */
  private readonly names = new Interner(undefined, false);
  private readonly holdings = new Map<string, Holding>();
  private readonly exchanger: ApiExchanger;
  private readonly lines: LineLimit;

  constructor(
    private readonly options: KubernetesOptions,
    private readonly writer: Writer,
    private readonly log: Log,
    private readonly dependencies: Dependencies,
  ) {
    const accept = acceptHeader(options.contentType, options.acceptContentTypes);
    this.exchanger = new ApiExchanger(options.connection, accept, dependencies);
    this.lines = new LineLimit(() => dependencies.clock.now());
  }

  /** @param required readiness waits for the sync, not only for the first attempt. */
  reflector(
    resource: Resource,
    required: boolean,
    before: (signal: AbortSignal, isFailing: boolean) => Promise<number | null> = () => Promise.resolve(null),
  ): Reflector {
    const shared = this.shared(resource);
    const complete = once(required, () => {
      shared.writer.complete();
    });
    const nodeRead = once(true, () => this.options.nodeRead?.());
    return new Reflector({
      ...shared,
      resource,
      before,
      settled: (synced) => {
        complete(synced);
        if (resource.kind === 'Node') nodeRead(synced);
      },
    });
  }

  serviceCIDRs(): ServiceCIDRList {
    return new ServiceCIDRList(this.shared(SERVICE_CIDRS));
  }

  held(): Pick<RunningKubernetes, 'holdings' | 'withdraw'> {
    const { holdings } = this;
    const withdraw = (): void => {
      for (const { writer, inventory } of holdings.values()) {
        writer.apply(inventory.relist().commit());
        writer.complete();
      }
    };
    return { holdings, withdraw };
  }

  private shared(resource: Resource): {
    readonly exchanger: Exchanger;
    readonly writer: SourceWriter;
    readonly inventory: Inventory;
    readonly tracing: SourceTracing | null;
    readonly log: Log;
    readonly dependencies: Dependencies;
    readonly configSyncPeriodMs: number;
  } {
    const { exchanger, log, dependencies } = this;
    const { configSyncPeriodMs, tracing = null } = this.options;
    const holding = this.holding(resource);
    this.holdings.set(resource.name, holding);
    return { exchanger, ...holding, tracing, log, dependencies, configSyncPeriodMs };
  }

  private holding(resource: Resource): Holding {
    const { former, events } = this.options;
    const before = former?.holdings.get(resource.name);
    if (before === undefined) {
      const writer = this.writer.register(`kubernetes ${resource.name}`);
      return { writer, inventory: new Inventory(resource, this.names, this.log, events, this.lines) };
    }
    // Another server's versions cannot be compared with this one's.
    before.inventory.distrustVersions();
    return before;
  }
}

/** Calls back once, at the sync or, when that is not required, after the first attempt. */
function once(required: boolean, call: () => void): (synced: boolean) => void {
  let reported = false;
  return (synced) => {
    if (reported || (required && !synced)) return;
    reported = true;
    call();
  };
}
