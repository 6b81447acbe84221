import type { ProxyMode } from '../../../src/config/effective.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';

const MODES = ['nftables', 'iptables-nft', 'iptables-legacy', 'ipvs-nft', 'ipvs-legacy'] as const;

/** The modes that packets are tried in; the second word of a name is the flavour of iptables. */
export type LabMode = (typeof MODES)[number];

/** Set in a file that runs another file's tests once more, before it loads that. */
export const MODE_VARIABLE = 'POINTSMAN_LAB_MODE';

/** The mode of this test process. */
export function labMode(): LabMode {
  const named = process.env[MODE_VARIABLE];
  const mode = named === undefined ? 'nftables' : MODES.find((each) => each === named);
  if (mode === undefined) throw new Error(`${MODE_VARIABLE}: no mode ${named}`);
  return mode;
}

/** A mode's name in the configuration, and the programs that write its rules; null: nft. */
export function configuredMode(mode: LabMode): { readonly name: ProxyMode; readonly flavor: IptablesFlavor | null } {
  if (mode === 'nftables') return { name: mode, flavor: null };
  const [name, flavor] = mode.split('-') as ['iptables' | 'ipvs', IptablesFlavor];
  return { name, flavor };
}

/** What packets notice of the mode they meet; the READMEs of src/dataplane/iptables and ipvs have the same in words. */
export interface ModeTraits {
  /** Node ports answer on 127.0.0.1 where their addresses have it (SV-32, SV-35). */
  readonly servesLocalhost: boolean;
  /** What a Service drops is refused to the node itself as long as connections of a former endpoint last. */
  readonly refusesWhileDraining: boolean;
  /** A client keeps its endpoint at all frontends of a Service port; otherwise each address remembers by itself (IV-02). */
  readonly sharesAffinity: boolean;
  /** A client is not forgotten before its connections are, which the kernel keeps for a while after their end. */
  readonly remembersConnected: boolean;
  /** Of SCTP, an INIT to an endpoint that takes no new flows is a new association, whatever its ports, and goes to another. */
  readonly movesInit: boolean;
  /** Endpoints are taken in turn (the scheduler rr), so that few requests meet them all. */
  readonly takesTurns: boolean;
}

export function traitsOf(mode: LabMode): ModeTraits {
  const { name } = configuredMode(mode);
  return {
    servesLocalhost: name === 'iptables',
    refusesWhileDraining: name === 'ipvs',
    sharesAffinity: name !== 'ipvs',
    remembersConnected: name === 'ipvs',
    movesInit: name === 'ipvs',
    takesTurns: name === 'ipvs',
  };
}

/** Fields of KubeProxyConfiguration and flags that select a mode, with the settings that a test gives under `nftables`. */
export function modeConfiguration(
  mode: LabMode,
  config: Readonly<Record<string, unknown>>,
): { readonly config: Readonly<Record<string, unknown>>; readonly flags: readonly string[] } {
  const { nftables, ...rest } = config;
  const { name, flavor } = configuredMode(mode);
  if (flavor === null)
    return { config: { mode: name, ...(nftables === undefined ? {} : { nftables }), ...rest }, flags: [] };
  return {
    // Node ports answer where those of nftables mode do when nothing is said.
    config: { mode: name, ...sections(name, nftables), nodePortAddresses: ['primary'], ...rest },
    flags: ['--iptables-flavor', flavor],
  };
}

/** Mode ipvs has its periods in a section of its own, and the rest in that of mode iptables. */
function sections(name: ProxyMode, settings: unknown): Readonly<Record<string, unknown>> {
  if (settings === undefined) return {};
  if (name === 'iptables') return { iptables: settings };
  const entries = Object.entries(settings as Readonly<Record<string, unknown>>);
  const pick = (isPeriod: boolean): object =>
    Object.fromEntries(
      entries.filter(([field]) => (field.endsWith('SyncPeriod') || field === 'syncPeriod' ? isPeriod : !isPeriod)),
    );
  return { iptables: pick(false), ipvs: pick(true) };
}
