import type { Document } from './documents.js';
import type { Finding } from './findings.js';
import { gateFindings } from './agreement/gates.js';
import { portFindings } from './agreement/ports.js';
import { rangeFindings } from './agreement/ranges.js';
import { serviceFindings } from './agreement/services.js';

/** Where documents that were given together do not agree. Each finding is at one of them, and names the other. */
export function agreementFindings(documents: readonly Document[]): readonly Finding[] {
  const all = [rangeFindings, portFindings, gateFindings, serviceFindings].flatMap((find) => find(documents));
  const more = all.slice(MAX_FINDINGS);
  if (more.length === 0) return all;
  const severity = more.some((finding) => finding.severity === 'error') ? 'error' : 'warning';
  const problem = `and ${more.length} more places where files do not agree`;
  const rest: Finding = {
    severity,
    rule: 'more',
    file: '',
    document: null,
    path: '',
    value: null,
    problem,
    expected: '',
  };
  return [...all.slice(0, MAX_FINDINGS), rest];
}

/** Nobody reads more. */
const MAX_FINDINGS = 500;
