import type { KernelRelease } from '../../../src/base/kernel-release.js';
import type { ServiceLimits } from '../../../src/base/service-limits.js';
import type { Document } from './documents.js';
import { firstOf, type Finding } from './findings.js';
import { controlPlaneFindings } from './agreement/control-plane.js';
import { delayFindings } from './agreement/delay.js';
import { gateFindings } from './agreement/gates.js';
import { kernelFindings } from './agreement/kernel.js';
import { portFindings } from './agreement/ports.js';
import { rangeFindings } from './agreement/ranges.js';
import { serviceFindings } from './agreement/services.js';

/** What else documents are compared with; null: nothing, or for kernels what Nodes report. */
export interface Demands {
  readonly kernel: KernelRelease | null;
  /** Milliseconds from a change of a pod to rules on all nodes. */
  readonly objective: number | null;
  /** How much of one Service nodes program, as the proxies' flags have it. */
  readonly limits: ServiceLimits;
}

/** Where documents that were given together do not agree. Each finding is at one of them, and names the other. */
export function agreementFindings(
  documents: readonly Document[],
  { kernel, objective, limits }: Demands,
): readonly Finding[] {
  const all = [rangeFindings, portFindings, gateFindings, controlPlaneFindings].flatMap((find) => find(documents));
  const ofServices = serviceFindings(documents, limits);
  const ofKernel = kernelFindings(documents, kernel);
  const ofDelay = objective === null ? [] : delayFindings(documents, objective);
  return firstOf([...all, ...ofServices, ...ofKernel, ...ofDelay], MAX_FINDINGS, '');
}

/** More findings are of no use to a reader. */
const MAX_FINDINGS = 500;
