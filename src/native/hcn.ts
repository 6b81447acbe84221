import type { NativeError } from './errors.js';

/**
 * Objects of the Host Networking Service (HNS) in its schema of version 2, as Microsoft documents it ("HNS v2 API", HCN schema) and its library for Go,
 * hcsshim, reads and writes it (package hcn). Names are HNS's own. HNS leaves out what is empty or 0, so every member of a listed object may be missing.
 */

/** `Major` 2 in everything that is sent. */
interface HcnSchemaVersion {
  readonly Major: number;
  readonly Minor: number;
}

export interface HcnPolicy {
  readonly Type: string;
  readonly Settings?: unknown;
}

interface HcnSubnet {
  readonly IpAddressPrefix?: string;
  readonly Policies?: readonly HcnPolicy[];
  readonly Routes?: readonly {
    readonly NextHop?: string;
    readonly DestinationPrefix?: string;
    readonly Metric?: number;
  }[];
}

/** HostComputeNetwork. */
export interface HcnNetwork {
  readonly ID?: string;
  readonly Name?: string;
  /** `L2Bridge`, `Overlay`, `NAT`, `Transparent`, `L2Tunnel`, `ICS`, `Private`; spelled in any case. */
  readonly Type?: string;
  readonly Policies?: readonly HcnPolicy[];
  readonly Ipams?: readonly { readonly Type?: string; readonly Subnets?: readonly HcnSubnet[] }[];
  readonly Flags?: number;
  readonly SchemaVersion?: HcnSchemaVersion;
}

export const HCN_ENDPOINT_FLAGS = { remote: 1 } as const;

/** HostComputeEndpoint. */
export interface HcnEndpoint {
  readonly ID?: string;
  readonly Name?: string;
  /** Id of its network. */
  readonly HostComputeNetwork?: string;
  readonly HostComputeNamespace?: string;
  readonly Policies?: readonly HcnPolicy[];
  readonly IpConfigurations?: readonly { readonly IpAddress?: string; readonly PrefixLength?: number }[];
  /** `02-11-0A-01-02-03`. */
  readonly MacAddress?: string;
  /** {@link HCN_ENDPOINT_FLAGS}. */
  readonly Flags?: number;
  readonly SchemaVersion?: HcnSchemaVersion;
}

export const HCN_LOAD_BALANCER_FLAGS = { directServerReturn: 1, ipv6: 2 } as const;
export const HCN_PORT_MAPPING_FLAGS = {
  /** Internal load balancer: what comes from this node goes through it as well. */
  internal: 1,
  /** On every address of this node. */
  localRoutedVip: 2,
  useMux: 4,
  /** Packets keep the frontend as their destination. */
  preserveDestination: 8,
  /** The frontend is an address that the cluster does not assign. */
  vipExternalIp: 16,
} as const;
/** What of a client's connections goes to the same endpoint: one alone, those of one protocol, all. */
export const HCN_DISTRIBUTION = { connection: 0, sourceIpAndProtocol: 1, sourceIp: 2 } as const;

interface HcnPortMapping {
  /** IANA number. */
  readonly Protocol?: number;
  readonly InternalPort?: number;
  readonly ExternalPort?: number;
  /** {@link HCN_DISTRIBUTION}. */
  readonly DistributionType?: number;
  /** {@link HCN_PORT_MAPPING_FLAGS}. */
  readonly Flags?: number;
}

/** HostComputeLoadBalancer. */
export interface HcnLoadBalancer {
  readonly ID?: string;
  /** Ids. */
  readonly HostComputeEndpoints?: readonly string[];
  readonly SourceVIP?: string;
  readonly FrontendVIPs?: readonly string[];
  readonly PortMappings?: readonly HcnPortMapping[];
  /** {@link HCN_LOAD_BALANCER_FLAGS}. */
  readonly Flags?: number;
  readonly SchemaVersion?: HcnSchemaVersion;
}

export interface HcnObjects {
  readonly network: HcnNetwork;
  readonly endpoint: HcnEndpoint;
  readonly loadBalancer: HcnLoadBalancer;
}

export type HcnKind = keyof HcnObjects;

/** Ids are GUIDs, in lower case and without braces, in whatever way HNS spells them in `properties`. */
export interface HcnListed<Kind extends HcnKind> {
  readonly id: string;
  readonly properties: HcnObjects[Kind];
}

/** In each, `id` null lets HNS choose one. */
export type HcnOperation =
  | {
      readonly type: 'create';
      readonly kind: 'endpoint';
      readonly network: string;
      readonly id: string | null;
      readonly settings: HcnEndpoint;
    }
  | {
      readonly type: 'create';
      readonly kind: 'loadBalancer';
      readonly id: string | null;
      readonly settings: HcnLoadBalancer;
    }
  /** The whole of it, as it is to be. HNS from version 15.5 on; 15.4 answers success and changes nothing (kubernetes/kubernetes#131466). */
  | { readonly type: 'modify'; readonly kind: 'loadBalancer'; readonly id: string; readonly settings: HcnLoadBalancer }
  | { readonly type: 'delete'; readonly kind: 'endpoint' | 'loadBalancer'; readonly id: string };

/** What HNS reports by itself, which is little: nothing of endpoints and load balancers. Events are gathered until JavaScript runs. */
export interface HcnChange {
  /** A network came or went. */
  readonly networks: boolean;
  /** The service ended or restarted: anything may have changed, and this watch receives nothing more. */
  readonly disconnected: boolean;
}

export interface HcnVersion {
  readonly major: number;
  readonly minor: number;
}

/**
 * The Host Compute Network API, of Windows only. Rejects with ERR_HCN: `errno` is then the name of the HRESULT, such as `HCN_E_NETWORK_NOT_FOUND` or
 * `ERROR_ALREADY_EXISTS`, or the number as `0x80041234` where it has no name here; `kernelMessage` is HNS's own error record.
 */
export interface HcnAddon {
  /** `ERROR_MOD_NOT_FOUND` where Windows has no HNS: the feature Containers is not installed. */
  hcnVersion(): Promise<HcnVersion>;
  /** The ids of the objects of a kind, in one call whatever their number. */
  hcnIds(kind: HcnKind): Promise<readonly string[]>;
  /**
   * The objects of a kind, each asked for by itself; those that go meanwhile are left out.
   *
   * @param ids of some; null: all that HNS enumerates.
   */
  hcnList<Kind extends HcnKind>(kind: Kind, ids: readonly string[] | null): Promise<readonly HcnListed<Kind>[]>;
  /**
   * Does one after the other in the order given, also after a refusal, and answers for each its id, or why HNS refused it. An error names the operation
   * (`index`) and the object in words. HNS has no transactions: a process that is killed in between leaves what was done until then.
   */
  hcnApply(operations: readonly HcnOperation[]): Promise<readonly (string | NativeError)[]>;
  /** Calls back with all changes, external ones too. Answers what ends it; it ends with the environment too, and does not keep the process alive. */
  hcnWatch(onChange: (change: HcnChange) => void): Promise<() => void>;
}

/** What some versions of HNS have and others lack. */
export interface HcnFeatures {
  /** API and schema of version 2. */
  readonly v2: boolean;
  /** Overlay networks know which node a subnet is behind. */
  readonly remoteSubnet: boolean;
  /** Direct server return. */
  readonly dsr: boolean;
  readonly ipv6DualStack: boolean;
  /** {@link HCN_DISTRIBUTION} other than by connection. */
  readonly sessionAffinity: boolean;
  readonly modifyLoadBalancer: boolean;
}

/** The first version of each range that has the feature; one range ends with its major version, the last one never. From hcsshim and hnslib (hcnglobals.go). */
const FEATURES: Readonly<Record<keyof HcnFeatures, readonly (readonly [major: number, minor: number])[]>> = {
  v2: [[9, 2]],
  remoteSubnet: [[9, 2]],
  dsr: [
    [9, 3],
    [10, 2],
  ],
  ipv6DualStack: [[11, 10]],
  sessionAffinity: [[12, 0]],
  // 15.4 has the call, and it changes nothing.
  modifyLoadBalancer: [[15, 5]],
};

export function hcnFeatures({ major, minor }: HcnVersion): HcnFeatures {
  const has = (feature: keyof HcnFeatures): boolean => {
    const ranges = FEATURES[feature];
    return ranges.some(([fromMajor, fromMinor], at) => {
      if (major === fromMajor) return minor >= fromMinor;
      return at === ranges.length - 1 && major > fromMajor;
    });
  };
  return {
    v2: has('v2'),
    remoteSubnet: has('remoteSubnet'),
    dsr: has('dsr'),
    ipv6DualStack: has('ipv6DualStack'),
    sessionAffinity: has('sessionAffinity'),
    modifyLoadBalancer: has('modifyLoadBalancer'),
  };
}
