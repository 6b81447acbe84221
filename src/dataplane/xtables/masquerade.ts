import type { IptablesTable } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { SHARED_CHAIN } from './names.js';
import { commentMatch, type Chain } from './rules.js';

export const MASQUERADE = 'MASQUERADE --random-fully';

/** Rules with which a mode completes the chains of {@link masqueradeChains}. */
interface MasqueradeExtras {
  /** The first of KUBE-FORWARD. */
  readonly forward: readonly string[];
  /** The first of KUBE-POSTROUTING, for packets with the mark or without. */
  readonly postrouting: readonly string[];
  /** For packets that have the mark, which they still have. */
  readonly marked: readonly string[];
}

/**
 * The chains that masquerade packets with the node's mark, in kube-proxy's spelling: the chain that marks, the one that
 * masquerades marked packets, and the one that accepts them in FORWARD, together with established connections.
 */
export function masqueradeChains(node: NodePlan, { forward, postrouting, marked }: MasqueradeExtras): readonly Chain[] {
  const bit = `0x${node.masqueradeMark.toString(16)}`;
  const isMarked = `-m mark --mark ${bit}/${bit}`;
  return [
    fixedChain('filter', SHARED_CHAIN.forward, [
      ...forward,
      `${commentMatch('kubernetes forwarding rules')} ${isMarked} -j ACCEPT`,
      `${commentMatch('kubernetes forwarding conntrack rule')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ]),
    fixedChain('nat', SHARED_CHAIN.postrouting, [
      ...postrouting,
      `${unmarkedMatch(node)} -j RETURN`,
      ...marked,
      // The bit is cleared so that a packet that is encapsulated and comes by again is not masqueraded twice.
      `-j MARK --set-xmark ${bit}/0x0`,
      `${commentMatch('kubernetes service traffic requiring SNAT')} -j ${MASQUERADE}`,
    ]),
    fixedChain('nat', SHARED_CHAIN.markMasquerade, [`-j MARK --set-xmark ${bit}/${bit}`]),
  ];
}

/** The match of packets without the mark. */
export function unmarkedMatch({ masqueradeMark }: NodePlan): string {
  const bit = `0x${masqueradeMark.toString(16)}`;
  return `-m mark ! --mark ${bit}/${bit}`;
}

/** A chain that is no Service's. */
export function fixedChain(table: IptablesTable, name: string, rules: readonly string[]): Chain {
  return { table, name, rules, owner: null };
}
