import { parseRule } from '../xtables/listing.js';
import { RefusedByRules, type Refusal, type RefusedByRulesParts } from '../xtables/refused-by-rules.js';
import { CHAIN, DIVISION } from './names.js';
import { frontendIn } from './read-back.js';

/** What rules of filter refuse. */
export function rulesThatRefuse(parts: Pick<RefusedByRulesParts, 'addon' | 'family' | 'flavor'>): RefusedByRules {
  return new RefusedByRules({ ...parts, prefix: 'KUBE-', refusalIn });
}

/** What a rule of filter does with packets to a frontend; null: nothing, or it selects no single one. */
function refusalIn(chain: string, text: string): Refusal | null {
  const rule = parseRule(text);
  const frontend = frontendIn(rule, chain.startsWith(CHAIN.externalNodePorts));
  if (frontend === null) return null;
  if (rule.target === 'REJECT') return { frontend, verdict: 'refused', reason: 'no-endpoints' };
  if (rule.target !== 'DROP') return null;
  const isOfOthers = chain.startsWith(DIVISION.proxyFirewall) && rule.source === null;
  return { frontend, verdict: 'dropped', reason: isOfOthers ? 'source-range' : 'no-local-endpoints' };
}
