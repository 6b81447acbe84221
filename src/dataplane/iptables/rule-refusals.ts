import { parseRule } from '../xtables/listing.js';
import { RefusedByRules, type Refusal, type RefusedByRulesParts } from '../xtables/refused-by-rules.js';
import { CHAIN, isFirewallChain } from './names.js';
import { frontendIn } from './read-back.js';

/** The refusals by rules of filter. */
export function rulesThatRefuse(parts: Pick<RefusedByRulesParts, 'addon' | 'family' | 'flavor'>): RefusedByRules {
  return new RefusedByRules({ ...parts, prefix: 'KUBE-', refusalIn });
}

/** The refusal of packets to a frontend by a rule of filter; null: none, or it selects no single frontend. */
function refusalIn(chain: string, text: string): Refusal | null {
  const rule = parseRule(text);
  const frontend = frontendIn(rule, chain.startsWith(CHAIN.externalNodePorts));
  if (frontend === null) return null;
  if (rule.target === 'REJECT') return { frontend, verdict: 'refused', reason: 'no-endpoints' };
  if (rule.target !== 'DROP') return null;
  const isOfOthers = isFirewallChain(chain) && rule.source === null;
  return { frontend, verdict: 'dropped', reason: isOfOthers ? 'source-range' : 'no-local-endpoints' };
}
