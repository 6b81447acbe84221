/**
 * Chains of more than one mode, by kube-proxy's names (behaviour IT-02, IV-21): other software and administrators know them.
 * Their rules are each mode's own, except what masquerade.ts makes.
 */
export const SHARED_CHAIN = {
  services: 'KUBE-SERVICES',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
} as const;

/** Rules that mark packets need what acts on the mark. */
export const MARK_COMPANIONS: ReadonlyMap<string, string> = new Map([
  [SHARED_CHAIN.markMasquerade, SHARED_CHAIN.postrouting],
]);
