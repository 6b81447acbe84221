import type { Document } from './documents.js';
import { firstOf, type Finding } from './findings.js';
import { gateFindings } from './agreement/gates.js';
import { portFindings } from './agreement/ports.js';
import { rangeFindings } from './agreement/ranges.js';
import { serviceFindings } from './agreement/services.js';

/** Where documents that were given together do not agree. Each finding is at one of them, and names the other. */
export function agreementFindings(documents: readonly Document[]): readonly Finding[] {
  const all = [rangeFindings, portFindings, gateFindings, serviceFindings].flatMap((find) => find(documents));
  return firstOf(all, MAX_FINDINGS, '');
}

/** Nobody reads more. */
const MAX_FINDINGS = 500;
