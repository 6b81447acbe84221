import type { Family } from '../base/ip.js';
import type { Applied } from './errors.js';

/** What identifies a virtual service of ip_vs. */
export interface IpvsService {
  /** IANA number; 0 with a mark. */
  readonly protocol: number;
  readonly family: Family;
  /** 4 or 16 bytes; null where a packet mark selects the packets. */
  readonly address: Uint8Array | null;
  readonly port: number;
  /** 0 where there is an address. */
  readonly mark: number;
}

/** What can be changed about one. */
export interface IpvsServiceState {
  /** A name of at most 15 bytes; ENOENT when the kernel neither has it nor can load it. */
  readonly scheduler: string;
  /** IP_VS_SVC_F_*, as {@link IPVS_FLAGS}; the kernel's own is left out. */
  readonly flags: number;
  /** How long a client stays with its destination after the last packet; 0 without the flag for persistence. */
  readonly timeoutSeconds: number;
  /** Clients whose addresses have this many bits in common count as one for persistence: 0 to 32 or 128, which each client has to itself. */
  readonly prefixLength: number;
}

export const IPVS_FLAGS = {
  persistent: 0x1,
  onePacket: 0x4,
  scheduler1: 0x8,
  scheduler2: 0x10,
  scheduler3: 0x20,
} as const;

export interface IpvsListedService extends IpvsService, IpvsServiceState {}

/** Destinations of one virtual service, in the kernel's order; of its family only. */
export interface IpvsDestinations {
  /** As EndpointList of base. */
  readonly endpoints: Uint8Array;
  /** One for each endpoint, as the next two. */
  readonly weights: Uint32Array;
  /** Active and inactive ones together; those that persistence alone remembers do not count. */
  readonly connections: Uint32Array;
  /** IP_VS_CONN_F_FWD_MASK: 0 is masquerading, which is what destinations of ours have. */
  readonly methods: Uint8Array;
  /** 1 where there are bounds on connections, which destinations of ours have not. */
  readonly bounded: Uint8Array;
}

export type IpvsOperation =
  | {
      readonly type: 'service';
      /** EEXIST: `new` found it. ESRCH: `set` found none. */
      readonly verb: 'new' | 'set';
      readonly service: IpvsService;
      readonly state: IpvsServiceState;
    }
  | {
      readonly type: 'service';
      /** ESRCH: there is none. Its destinations go too, and its connections. */
      readonly verb: 'delete';
      readonly service: IpvsService;
      readonly state: null;
    }
  | {
      readonly type: 'destinations';
      /** ESRCH: there is no such service. EEXIST: `new` found the destination. ENOENT: `set` or `delete` found none. */
      readonly verb: 'new' | 'set' | 'delete';
      readonly service: IpvsService;
      /** As EndpointList of base, of the service's family; a message to the kernel for each. */
      readonly endpoints: Uint8Array;
      /** 0 takes no new connections. Without meaning to `delete`. */
      readonly weight: number;
    };

/** For connections without traffic, in seconds. */
export interface IpvsTimeouts {
  readonly tcp: number;
  /** After a FIN. */
  readonly tcpFin: number;
  readonly udp: number;
}

/**
 * Virtual services. Asking loads no module of the kernel: what is not loaded holds nothing. Rejects with ERR_NETLINK or ERR_NETLINK_DECODE; whether anything
 * happened is unknown then.
 */
export interface IpvsAddon {
  /**
   * Does all of it in the order given, but for what it answers that the kernel refused. An error names the operation
   * (`index`), of destinations the endpoint in it (`element`), and the service in words. Loads ip_vs and schedulers.
   */
  ipvsApply(operations: readonly IpvsOperation[]): Promise<Applied>;
  /** Concurrent changes may leave out a service or repeat one; the kernel does not report it. */
  ipvsServices(family: Family): Promise<readonly IpvsListedService[]>;
  /** For each service, in the order given; of one that is not there none. As above in other regards. */
  ipvsDestinations(services: readonly IpvsService[]): Promise<readonly IpvsDestinations[]>;
  /**
   * A whole number for all that {@link ipvsServices} would answer, the same for the same services in whatever order. It costs less than a comparison: it is
   * for a caller that polls, because ip_vs sends no notifications of changes.
   */
  ipvsServicesDigest(family: Family): Promise<number>;
  /** The same for each of some services: of its destinations, connections apart; 0 for one without any. */
  ipvsDestinationsDigests(services: readonly IpvsService[]): Promise<Float64Array>;
  /**
   * Where persistence sends a client of a service again: one endpoint as in {@link EndpointList}, of port 0 where the service is on FTP's; null: nowhere in
   * particular. Rejects with EFBIG where the kernel, which reports it only in the list of all connections, has more than some 160,000.
   */
  ipvsRemembered(service: IpvsService, client: Uint8Array): Promise<Uint8Array | null>;
  /** Null: ip_vs is not loaded. */
  ipvsTimeouts(): Promise<IpvsTimeouts | null>;
  /** 0 keeps one as it is. Loads ip_vs. */
  ipvsSetTimeouts(timeouts: IpvsTimeouts): Promise<void>;
}
