import type { Verdict } from '../../src/plan/trace.js';

export { sourceKind, tracePacket, type Verdict } from '../../src/plan/trace.js';

/** `reject`, `drop`, `none`, or the endpoints with `m` (masqueraded) or `-` behind them. */
export function printVerdict(verdict: Verdict): string {
  if (verdict.type !== 'forward') return verdict.type;
  const { endpoints, masquerade, hairpin } = verdict;
  if (masquerade || hairpin.length === endpoints.length) return [...endpoints, 'm'].join(' ');
  return [...endpoints.map((endpoint) => (hairpin.includes(endpoint) ? `${endpoint}(m)` : endpoint)), '-'].join(' ');
}
