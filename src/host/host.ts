import type { Family, IPAddress, IPPrefix } from '../base/ip.js';
import type { ConntrackTimeouts } from '../base/conntrack-timeouts.js';
import type { SeenFile, Sysctl } from '../base/sysctl.js';

/** The part of the configuration that sets kernel values of conntrack; durations in milliseconds. 0 and null leave a value as it is. */
export interface ConntrackSettings {
  readonly maxPerCore: number;
  /** Least number of flows that fit; ignored while `maxPerCore` is 0. */
  readonly min: number;
  readonly tcpEstablishedMs: number | null;
  readonly tcpCloseWaitMs: number | null;
  readonly udpMs: number | null;
  readonly udpStreamMs: number | null;
  readonly tcpBeLiberal: boolean;
}

/** What the configuration asks of the kernel beside rules. */
export interface KernelSettings {
  readonly conntrack: ConntrackSettings;
  /** The sysctls of the mode. */
  readonly sysctls: readonly Sysctl[];
  /** Whether packets may be routed off loopback; only once the rules are there that guard it. */
  readonly opensLoopback: boolean;
}

export interface KernelValue {
  readonly path: string;
  readonly value: number;
  /** `at-least`: a larger value found is left alone. */
  readonly match: 'equal' | 'at-least';
  /** Any other value found is left alone. */
  readonly inPlaceOf?: number;
  /** It does not get its former value back. */
  readonly stays?: true;
  /** What is missing while it cannot be set, and what to do about it. */
  readonly advice?: string;
}

/** A value that is not what it should be, and why. */
export interface KernelValueProblem {
  readonly path: string;
  readonly wanted: number;
  /** What was there; null when it could not be read. */
  readonly found: string | null;
  /** Such as `ENOENT` while the conntrack module is not loaded, `EROFS` or `EACCES` in a container; null when there is none. */
  readonly errno: string | null;
  readonly message: string;
}

/** A value that was set. */
export interface WrittenValue extends KernelValue {
  /** What it had been. */
  readonly found: string;
}

export interface KernelValueReport {
  readonly written: readonly WrittenValue[];
  readonly problems: readonly KernelValueProblem[];
  /** What all files said in the end. */
  readonly seen: readonly SeenFile[];
}

/** What a platform reports of this process. A missing value is 0; a limit that is not reported or not set is -1. */
export interface ProcessUsage {
  /** In bytes. */
  readonly virtualMemory: number;
  readonly virtualMemoryLimit: number;
  readonly openFiles: number;
  readonly openFilesLimit: number;
  /** IPv4 bytes that came into the process's network since it was made. */
  readonly received: number;
  readonly sent: number;
}

/** The kernel's table of connections in this machine's network. */
export interface FlowTableSize {
  readonly entries: number;
  /** New connections are dropped when there are that many. */
  readonly limit: number;
}

/** What the kernel does with packets beside rules. */
/** A bridge of this machine. */
export interface Bridge {
  readonly name: string;
  /** The networks that it has an address of. */
  readonly prefixes: readonly IPPrefix[];
  /** Whether what it carries from port to port meets netfilter (bridge-nf-call-iptables, -ip6tables); null: br_netfilter is not loaded. */
  readonly filters: Readonly<Record<Family, boolean | null>>;
}

export interface NetworkFacts {
  /** Whether it forwards at all; null: it cannot be read. */
  readonly forwarding: Readonly<Record<Family, boolean | null>>;
  /** Interfaces by which it does not, although it forwards. */
  readonly notForwarding: Readonly<Record<Family, readonly string[]>>;
  /** Interfaces with a strict rp_filter. */
  readonly strictReversePath: readonly string[];
  /** Whether 127.0.0.0/8 is routed (route_localnet), by some interface at least. */
  readonly routesLoopback: boolean;
  /** Bridges with ports. */
  readonly bridges: readonly Bridge[];
  /** Packets that were dropped because the table of connections was full; null: the kernel does not report it. */
  readonly flowDrops: number | null;
}

/** The owner of the network that this machine's rules are in. */
export type Claim =
  /** It is ours until {@link Claim.release}, or until the process ends in whatever way. */
  | { readonly type: 'held'; readonly release: () => Promise<void> }
  /** Another proxy has it; `who` is how it describes itself. */
  | { readonly type: 'taken'; readonly who: string }
  /** It cannot be found out, for a reason that keeps no node from its rules. */
  | { readonly type: 'unknown'; readonly why: string };

export interface ClaimOptions {
  /** The answer to another proxy that asks: one line. */
  readonly identity: string;
  /**
   * For platforms that have it: by which name proxies of one network find each other, and the user at the other end of a socket, null where the kernel does
   * not report it.
   */
  readonly peer: () => { peerName(): string; peerUser(descriptor: number): number | null };
}

/** What the program asks of the machine, its rules apart. Handed in everywhere; a folder for each platform has one. */
export interface Host {
  /** Each mode names the platforms that it is for. */
  readonly platform: NodeJS.Platform;
  /** IP families that this machine's network namespace serves. */
  readonly families: () => readonly Family[];
  /** Addresses of interfaces that are up, as they are now, loopback included. */
  readonly localAddresses: () => readonly IPAddress[];
  /** The link address of the interface that has an address, as `02:11:0a:00:00:01`; null: none has. */
  readonly interfaceMac: (address: IPAddress) => string | null;
  /** Interfaces without addresses too. */
  readonly interfaceNames: () => Promise<readonly string[]>;
  /** What the settings come to on this machine, in the order to write it. */
  readonly kernelValues: (settings: KernelSettings) => readonly KernelValue[];
  /**
   * Writes the values that differ. Never rejects, and no failure keeps another value from being written: a node whose limits cannot be raised must still get
   * its rules. The caller reports problems and tries again.
   */
  readonly applyKernelValues: (values: readonly KernelValue[]) => Promise<KernelValueReport>;
  /** What {@link applyKernelValues} would write. */
  readonly compareKernelValues: (values: readonly KernelValue[]) => Promise<readonly WrittenValue[]>;
  /** Whether conntrack takes TCP packets outside the window for valid; false where the kernel does not report it (behaviour ST-45). */
  readonly isTcpBeLiberal: () => Promise<boolean>;
  /** For how long conntrack keeps flows in this network namespace; what the kernel begins with where there is no conntrack. */
  readonly conntrackTimeouts: () => ConntrackTimeouts;
  /** How soon this process is ended when memory runs out: -1000 to 1000, lowest last (behaviour ST-48). Null: it is set. */
  readonly setOomPriority: (score: number) => Promise<KernelValueProblem | null>;
  /** Asked at every scrape of the metrics, so it has to be cheap. */
  readonly processUsage: () => ProcessUsage;
  /** Asked at every scrape, too. Null: this platform has no such table, or it is not loaded. */
  readonly flowTableSize: () => FlowTableSize | null;
  /** Read on request. Null: this platform has nothing of it. */
  readonly networkFacts: () => Promise<NetworkFacts | null>;
  /** Why this machine has no route to an address, such as `ENETUNREACH`; null: it has one. Nothing is sent. */
  readonly routeProblem: (address: IPAddress) => Promise<string | null>;
  /** The interface of the main table's route to an IPv4 address; null: there is none. */
  readonly routeInterface: (address: IPAddress) => Promise<string | null>;
  /** Claims the network namespace, or the Windows node, for one proxy; null: this addon gives proxies no name to meet at. Never rejects. */
  readonly claimNetwork: (options: ClaimOptions) => Promise<Claim | null>;
  /** What tools that list processes show in place of Node's own name. */
  readonly nameProcess: (program: string, argv: readonly string[]) => void;
}
