/** Sets and maps of mode nftables whose elements packets make, or connections that end. */
const MADE_MEANWHILE =
  /((?:map|set) (?:clients-\S+|room-for-clients-\S+|asked-nodeports|unremembered-clients|recent-attempts|connections-(?:to-)?reset) \{[^}]*?)elements = \{[^}]*\}/g;

/** A listing of a ruleset without what the kernel itself put into it. */
export function withoutClients(ruleset: string): string {
  return ruleset.replaceAll(MADE_MEANWHILE, '$1');
}
