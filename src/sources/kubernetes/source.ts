import type { EventRecorder } from '../../net/events.js';
import type { Log } from '../../net/log.js';
import type { SourceWriter, Writer } from '../../state/writer.js';
import { Interner } from '../translate/intern.js';
import { acceptHeader } from './codec/codec.js';
import type { ApiConnection } from './connection.js';
import { ApiExchanger, type Exchanger } from './exchange.js';
import { Inventory } from './inventory.js';
import { Reflector } from './reflector.js';
import { ENDPOINT_SLICES, nodeResource, SERVICE_CIDRS, SERVICES, type Resource } from './resources.js';
import { ServiceCIDRList } from './service-cidrs.js';
import type { ResourceStatus } from './status.js';
import type { Surroundings } from './timing.js';

export interface KubernetesOptions {
  readonly connection: ApiConnection;
  /** The Node whose object is watched. */
  readonly nodeName: string;
  /** clientConnection.contentType; empty for protobuf. */
  readonly contentType: string;
  /** clientConnection.acceptContentTypes, the whole Accept header when it is not empty. */
  readonly acceptContentTypes: string;
  /** configSyncPeriod in milliseconds: how often what is in doubt is asked anew, and ServiceCIDRs are listed. */
  readonly configSyncPeriodMs: number;
  /**
   * Whether readiness waits until the Node has been read, as it must where pod CIDRs are taken from it. Otherwise the first attempt is waited for,
   * however it ends (behaviour WA-12).
   */
  readonly nodeRequired: boolean;
  /** Told of objects that cannot be used. */
  readonly events: EventRecorder;
}

export interface RunningKubernetes {
  /** Ends every request; resolves when nothing more will be applied. The connection stays open. */
  stop(): Promise<void>;
  /** One entry per resource: services, endpointslices, nodes, servicecidrs. */
  status(): readonly ResourceStatus[];
}

/**
 * Reads Services, EndpointSlices, our Node and ServiceCIDRs from the API server and follows their changes. Each resource registers as a
 * source of its own, named after it, and says complete at its initial sync. Uses three connections at most.
 */
export function startKubernetes(
  options: KubernetesOptions,
  writer: Writer,
  log: Log,
  surroundings: Surroundings,
): RunningKubernetes {
  const accept = acceptHeader(options.contentType, options.acceptContentTypes);
  const start = new Start(
    options,
    writer,
    log,
    surroundings,
    new ApiExchanger(options.connection, accept, surroundings),
  );
  const services = start.reflector(SERVICES, true);
  const slices = start.reflector(ENDPOINT_SLICES, true);
  const cidrs = start.serviceCIDRs();
  // The Node's connection carries the lists of ServiceCIDRs while no watch of the Node is open.
  const node = start.reflector(nodeResource(options.nodeName), options.nodeRequired, (signal) => cidrs.refresh(signal));
  const reflectors = [services, slices, node];
  for (const reflector of reflectors) reflector.start();
  return {
    stop: async () => {
      await Promise.all(reflectors.map((reflector) => reflector.stop()));
    },
    status: () => [...reflectors.map((reflector) => reflector.status()), cidrs.status()],
  };
}

/** Reads our Node alone, and follows it. */
export function watchNode(
  options: KubernetesOptions,
  writer: Writer,
  log: Log,
  surroundings: Surroundings,
): RunningKubernetes {
  const accept = acceptHeader(options.contentType, options.acceptContentTypes);
  const exchanger = new ApiExchanger(options.connection, accept, surroundings);
  const reflector = new Start(options, writer, log, surroundings, exchanger).reflector(
    nodeResource(options.nodeName),
    true,
  );
  reflector.start();
  return { stop: () => reflector.stop(), status: () => [reflector.status()] };
}

class Start {
  /** Neither codec makes strings that are windows on others. */
  private readonly names = new Interner(undefined, false);

  constructor(
    private readonly options: KubernetesOptions,
    private readonly writer: Writer,
    private readonly log: Log,
    private readonly surroundings: Surroundings,
    private readonly exchanger: Exchanger,
  ) {}

  /** @param required readiness waits for the sync, not only for the first attempt. */
  reflector(
    resource: Resource,
    required: boolean,
    before: (signal: AbortSignal) => Promise<void> = () => Promise.resolve(),
  ): Reflector {
    const writer = this.writer.register(`kubernetes ${resource.name}`);
    return new Reflector({
      ...this.shared(resource),
      resource,
      writer,
      before,
      settled: once(writer, required),
    });
  }

  serviceCIDRs(): ServiceCIDRList {
    return new ServiceCIDRList({
      ...this.shared(SERVICE_CIDRS),
      writer: this.writer.register(`kubernetes ${SERVICE_CIDRS.name}`),
    });
  }

  private shared(resource: Resource): {
    readonly exchanger: Exchanger;
    readonly inventory: Inventory;
    readonly log: Log;
    readonly surroundings: Surroundings;
    readonly configSyncPeriodMs: number;
  } {
    const { exchanger, log, surroundings } = this;
    const { events, configSyncPeriodMs } = this.options;
    const inventory = new Inventory(resource, this.names, log, events);
    return { exchanger, inventory, log, surroundings, configSyncPeriodMs };
  }
}

/** Says complete, once, at the sync or, when that is not required, after the first attempt. */
function once(writer: SourceWriter, required: boolean): (synced: boolean) => void {
  let said = false;
  return (synced) => {
    if (said || (required && !synced)) return;
    said = true;
    writer.complete();
  };
}
