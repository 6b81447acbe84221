/**
 * The whole seam between TypeScript and the addon: a subsystem of the kernel each, in a file of its own. What crosses is complete: every field present,
 * absent is null, unions tagged by `type`. The addon encodes, sends and decodes; it fills no default and knows no Service. Nothing here blocks the JS
 * thread: every call that touches a socket or starts a program returns a promise that a worker thread completes.
 */

import type { AccountingAddon } from './accounting.js';
import type { ConntrackAddon } from './conntrack.js';
import type { HcnAddon } from './hcn.js';
import type { IpsetAddon } from './ipset.js';
import type { IptablesAddon } from './iptables.js';
import type { IpvsAddon } from './ipvs.js';
import type { MemoryAddon } from './memory.js';
import type { NftablesAddon } from './nftables.js';
import type { PeerAddon } from './peer.js';
import type { ProbeAddon } from './probe.js';
import type { RelayAddon } from './relay.js';
import type { RouteAddon } from './route.js';
import type { ServiceAddon } from './service.js';
import type { SysctlAddon } from './sysctl.js';
import type { TimeoutsAddon } from './timeouts.js';

export type * from './accounting.js';
export * from './conntrack.js';
export * from './hcn.js';
export * from './ipset.js';
export type * from './iptables.js';
export * from './ipvs.js';
export type * from './memory.js';
export type * from './nftables.js';
export type * from './peer.js';
export type * from './probe.js';
export type * from './relay.js';
export type * from './route.js';
export type * from './service.js';
export type * from './sysctl.js';
export type * from './timeouts.js';

/** Asking for a subsystem that this platform does not have (`SUBSYSTEM_PLATFORMS`) throws; nothing else does. */
export interface NativeAddon {
  readonly nftables: NftablesAddon;
  readonly conntrack: ConntrackAddon;
  readonly iptables: IptablesAddon;
  readonly accounting: AccountingAddon;
  readonly timeouts: TimeoutsAddon;
  readonly ipvs: IpvsAddon;
  readonly ipset: IpsetAddon;
  readonly route: RouteAddon;
  readonly memory: MemoryAddon;
  readonly peer: PeerAddon;
  readonly relay: RelayAddon;
  readonly sysctl: SysctlAddon;
  readonly probe: ProbeAddon;
  readonly hcn: HcnAddon;
  readonly service: ServiceAddon;
}
