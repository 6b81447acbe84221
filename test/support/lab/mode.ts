/** The modes that packets are tried in; the second of an iptables mode's name is its flavour. */
export type LabMode = 'nftables' | 'iptables-nft' | 'iptables-legacy';

/** Set in a file that runs another file's tests once more, before it loads that. */
export const MODE_VARIABLE = 'POINTSMAN_LAB_MODE';

/** The mode of this test process. */
export function labMode(): LabMode {
  const named = process.env[MODE_VARIABLE];
  switch (named) {
    case undefined:
      return 'nftables';
    case 'iptables-nft':
    case 'iptables-legacy':
      return named;
    default:
      throw new Error(`${MODE_VARIABLE}: no mode ${named}`);
  }
}

/** What packets notice of the mode they meet; the README of src/dataplane/iptables has the same table in words. */
export interface ModeTraits {
  /** Ports of a cluster IP that no Service port has are refused (behaviour VD-15). */
  readonly refusesUnusedPorts: boolean;
  /** Addresses of a Service CIDR that no Service has are dropped (VD-16). */
  readonly dropsUnusedAddresses: boolean;
  /** Node ports answer on 127.0.0.1 where their addresses have it (SV-32, SV-35). */
  readonly servesLocalhost: boolean;
}

export function traitsOf(mode: LabMode): ModeTraits {
  const isNftables = mode === 'nftables';
  return {
    refusesUnusedPorts: isNftables,
    dropsUnusedAddresses: isNftables,
    servesLocalhost: !isNftables,
  };
}

/** Fields of KubeProxyConfiguration and flags that select a mode, with the settings that a test gives under `nftables`. */
export function modeConfiguration(
  mode: LabMode,
  config: Readonly<Record<string, unknown>>,
): { readonly config: Readonly<Record<string, unknown>>; readonly flags: readonly string[] } {
  const { nftables, ...rest } = config;
  const section = nftables === undefined ? {} : { [mode === 'nftables' ? 'nftables' : 'iptables']: nftables };
  if (mode === 'nftables') return { config: { mode, ...section, ...rest }, flags: [] };
  return {
    // Node ports answer where those of nftables mode do when nothing is said.
    config: { mode: 'iptables', ...section, nodePortAddresses: ['primary'], ...rest },
    flags: ['--iptables-flavor', mode.replace('iptables-', '')],
  };
}
