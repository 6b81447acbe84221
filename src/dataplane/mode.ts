import { messageOf } from '../base/error-message.js';
import type { ConntrackTimeouts } from '../base/conntrack-timeouts.js';
import type { Family, IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { Sysctl } from '../base/sysctl.js';
import type { Config } from '../config/config.js';
import type { NativeAddon } from '../native/contract.js';
import type { ModeTraits } from '../plan/facts.js';
import type { FamilyTable, NodePlan } from '../plan/types.js';
import type { AttemptCounter, FamilyDataplane, ModeCounts, WatchForeignChanges } from './contract.js';
import type { Footprint, OwnFootprint } from './removal/footprint.js';

/** A mode's dependencies on this host. */
export interface ModeParts {
  readonly config: Config;
  readonly addon: NativeAddon;
  readonly log: Log;
  /** Called with every transaction before it is sent; `print` makes its text. */
  readonly onTransaction: (print: () => readonly string[]) => void;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  /** Whether conntrack is configured to accept TCP packets out of window (net.netfilter.nf_conntrack_tcp_be_liberal). */
  readonly isTcpBeLiberal: () => Promise<boolean>;
  /** For how long conntrack keeps flows: the sysctls in force. */
  readonly conntrackTimeouts: () => ConntrackTimeouts;
  /** The link address of the interface that has an address; null: none has. */
  readonly interfaceMac: (address: IPAddress) => string | null;
}

/** A mode at work on this host. */
export interface OpenMode {
  /** Those of the asked families that the mode can serve here. */
  readonly families: readonly Family[];
  readonly dataplane: (family: Family) => FamilyDataplane;
  readonly own: OwnFootprint;
  /** Removes all that the mode has in a family, if no footprint describes it; null: its footprint does. */
  readonly remove: ((family: Family) => Promise<void>) | null;
  /** Null: no notifications of external changes to this mode's rules. */
  readonly watch: WatchForeignChanges | null;
  /** Null: nothing is counted. */
  readonly modeCounts: () => Promise<ModeCounts | null>;
  /** Null: the mode cannot have connection attempts counted. */
  readonly attempts: (() => Promise<AttemptCounter>) | null;
}

/** A metric that kube-proxy has in some modes only: its name behind `kubeproxy_`, and its help. */
export interface ModeMetric {
  readonly name: string;
  readonly help: string;
}

export interface ListenerMetricNames {
  readonly open: ModeMetric;
  readonly failures: ModeMetric;
}

/** Under which names a mode's metrics are known; null: kube-proxy has none in this mode. */
export interface ModeMetrics {
  /** Whether syncs that compared everything and the others have separate durations (behaviour ME-02, ME-03). */
  readonly tellsFullSyncs: boolean;
  readonly syncFailures: ModeMetric;
  /** Counts syncs that did not compare everything; they count among all as well. */
  readonly partialSyncFailures: ModeMetric | null;
  /** Syncs that could not remove all conflicting objects. */
  readonly cleanupFailures: ModeMetric | null;
  /** Rules by table: those there are, and those that the last sync wrote. */
  readonly rules: { readonly held: ModeMetric; readonly written: ModeMetric } | null;
  /** The answers of {@link OpenMode.modeCounts}, by name. */
  readonly counted: readonly (ModeMetric & { readonly labels?: readonly string[] })[];
  /** Listeners for node ports on loopback, and failed attempts to open one. Absent: the mode has none. */
  readonly listeners?: ListenerMetricNames;
}

/** Why another mode is the better choice, logged once it is in force. */
interface Deprecation {
  /** The reason of the event. */
  readonly reason: string;
  readonly note: string;
}

/** Everything that the rest may ask of a mode. */
export interface ModeDefinition<Name extends string = string> {
  readonly name: Name;
  readonly platforms: readonly NodeJS.Platform[];
  readonly traits: (config: Config) => ModeTraits;
  readonly footprint: Footprint;
  readonly metrics: ModeMetrics;
  /** The kernel settings that it needs beside rules; they are kept while the mode is in force. */
  readonly sysctls: (config: Config) => readonly Sysctl[];
  /** Null: nothing speaks against it. */
  readonly deprecation: Deprecation | null;
  /** @throws ModeError when none of the families can be served. */
  open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode>;
  /** The parts of the mode that this kernel refuses, tried with the rules for these families' nodes. Nothing stays changed. */
  tryKernel(parts: ModeParts, nodes: readonly NodePlan[]): Promise<readonly unknown[]>;
  /** The ruleset of these tables as the mode's own tools print it. Needs no privileges. */
  render(
    parts: Pick<ModeParts, 'config' | 'addon' | 'isTcpBeLiberal' | 'conntrackTimeouts'>,
    tables: readonly FamilyTable[],
  ): Promise<string>;
}

/** Whether a mode has rules that count refused and dropped packets, where the kernel does not count for each rule anyway. */
export function countsRefused({ serviceTelemetry }: Pick<Config, 'serviceTelemetry'>): boolean {
  return serviceTelemetry !== null;
}

/** {@link ModeDefinition.tryKernel} of a mode that finds out what the kernel lacks when it is opened. */
export async function tryToOpen(
  open: WorkingMode['open'],
  parts: ModeParts,
  nodes: readonly NodePlan[],
): Promise<readonly unknown[]> {
  try {
    await open(
      parts,
      nodes.map(({ family }) => family),
    );
    return [];
  } catch (error) {
    return [error];
  }
}

/** A mode at work, which is a file of its own in the shipped program. */
interface WorkingMode {
  readonly open: (...args: Parameters<ModeDefinition['open']>) => OpenMode | Promise<OpenMode>;
  readonly render: (...args: Parameters<ModeDefinition['render']>) => string | Promise<string>;
  /** Absent: opening the mode finds out what the kernel lacks. */
  readonly tryKernel?: ModeDefinition['tryKernel'];
}

/** A mode whose code is loaded where it is used: while another one is in force, this one is no more than these facts. */
export function defineMode<const Name extends string>({
  load,
  ...facts
}: Omit<ModeDefinition<Name>, keyof WorkingMode> & {
  readonly load: () => Promise<WorkingMode>;
}): ModeDefinition<Name> {
  const working = async (): Promise<WorkingMode> => {
    try {
      return await load();
    } catch (error) {
      throw new ModeError(`mode ${facts.name} cannot be loaded: ${messageOf(error)}`);
    }
  };
  return {
    ...facts,
    open: async (parts, families) => (await working()).open(parts, families),
    async tryKernel(parts, nodes) {
      const { open, tryKernel } = await working();
      return tryKernel === undefined ? tryToOpen(open, parts, nodes) : tryKernel(parts, nodes);
    },
    render: async (parts, tables) => (await working()).render(parts, tables),
  };
}

/** The configured mode cannot run on this host at all. */
export class ModeError extends Error {
  override readonly name: string = 'ModeError';
}
