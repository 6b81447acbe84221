import { isDeepStrictEqual } from 'node:util';
import { inParts } from '../../../src/base/in-parts.js';
import type { IPAddress } from '../../../src/base/ip.js';
import { cutText } from '../../../src/base/outside-text.js';
import { printableLine } from '../../../src/base/printable.js';
import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import type { RuleAction, ServiceRule } from '../../../src/config/kinds/admission.js';
import { claimProblemSteps, type ClaimProblem, type Cluster } from '../../../src/plan/claim-problems.js';
import { FieldProblem, TranslateError } from '../../../src/sources/translate/errors.js';
import type { Interner } from '../../../src/sources/translate/intern.js';
import { translateService } from '../../../src/sources/translate/service.js';
import { mayHave, type ServicePolicy } from './policy.js';
import type { AdmissionRequest, Verdict } from './review.js';
import type { Work } from './turns.js';

/** Longer ones may be cut by a server that passes them on. */
export const MAX_WARNING_BYTES = 120;
export const MAX_WARNINGS = 10;
export const MAX_REFUSAL_BYTES = 1024;

/** What requests are judged by. */
interface Grounds {
  /** Null: it has not all been read. */
  readonly cluster: Cluster | null;
  /** Null: there is none that can be used. */
  readonly policy: ServicePolicy | null;
  readonly names: Interner;
}

/** Something that is wrong with a Service. */
interface Objection {
  /** Null: it is never refused. */
  readonly rule: ServiceRule | null;
  /** The same for two versions of a Service of which both have it. */
  readonly key: string;
  readonly text: string;
  /** In a dry run the API server makes up what it would give out. */
  readonly isGivenOut: boolean;
}

const ALLOWED: Verdict = { refusal: null, warnings: [] };

/**
 * Whether a request may be carried out. What a Service has already is no reason to refuse a change of something else: who has it can only be rid of it by such
 * a change. That holds for one that is being deleted, too: nodes serve it until its last finalizer is gone.
 */
export function* judge(request: AdmissionRequest, { cluster, policy, names }: Grounds): Work<Verdict> {
  const { operation, object, oldObject } = request;
  if (operation === 'DELETE' || operation === 'CONNECT' || object === null) return ALLOWED;
  if (!request.isService) return { refusal: null, warnings: ['pointsman reviews Services only: this was not checked'] };
  if (cluster === null)
    return { refusal: null, warnings: ['pointsman has not read the cluster yet: this Service was not checked'] };
  if (policy === null)
    return { refusal: null, warnings: ['pointsman has no usable policy: this Service was not checked'] };
  const tooLong = listProblems(object, oldObject, cluster.limits.frontends);
  if (tooLong.length > 0) return { refusal: tooLong.join('; '), warnings: [] };
  const grounds = { cluster, policy, names };
  const isLong = isLarge(object) || (oldObject !== null && isLarge(oldObject));
  if (isLong) yield;
  // What both versions have is no reason to refuse.
  const isSame = oldObject !== null && isAlike(object, oldObject);
  const before = new Set<string>();
  for (const some of oldObject === null || isSame ? [] : objections(oldObject, grounds)) {
    for (const { key } of some) before.add(key);
    if (isLong) yield;
  }
  const refused = new Texts(MAX_REFUSAL_BYTES);
  const warned = new Texts(MAX_WARNINGS);
  for (const some of objections(object, grounds)) {
    for (const { rule, key, text, isGivenOut } of some) {
      const action: RuleAction = rule === null ? 'Warn' : (policy.actions.get(rule) ?? 'Refuse');
      if (action === 'Ignore') continue;
      const isRefused = action === 'Refuse' && !isSame && !before.has(key) && !(request.dryRun && isGivenOut);
      (isRefused ? refused : warned).add(text);
    }
    if (isLong) yield;
  }
  return { refusal: refused.count === 0 ? null : refusalOf(refused), warnings: fewWarnings(warned) };
}

/** Texts of which the first are kept, as there may be thousands. */
class Texts {
  readonly first: string[] = [];
  count = 0;

  constructor(private readonly kept: number) {}

  add(text: string): void {
    if (this.count++ < this.kept) this.first.push(text);
  }
}

/** Whether two versions of a Service differ only in what no objection comes from, as after a patch of its metadata. */
function isAlike(one: Mapping, other: Mapping): boolean {
  const judged = ({ metadata, spec, status }: Mapping): unknown => [
    spec,
    status,
    isMapping(metadata) ? { ...metadata, managedFields: null } : metadata,
  ];
  return isDeepStrictEqual(judged(one), judged(other));
}

function refusalOf({ first }: Texts): string {
  const all = first.join('; ').slice(0, 2 * MAX_REFUSAL_BYTES);
  return cutText(printableLine(all), MAX_REFUSAL_BYTES);
}

/** Frontends, or ranges of sources, that take a millisecond or so. */
const LARGE = 500;

const LISTS = [
  ['spec', 'ports'],
  ['spec', 'externalIPs'],
  ['spec', 'loadBalancerSourceRanges'],
  ['status', 'loadBalancer', 'ingress'],
] as const;

/**
 * Lists that are too long to be read within the time that a review has, whatever the policy is: no Service has a use for so many. What was there before may
 * stay, and become less.
 */
function listProblems(object: Mapping, oldObject: Mapping | null, most: number): readonly string[] {
  return LISTS.flatMap((path) => {
    const length = lengthOf(object, path);
    if (length <= most || (oldObject !== null && length <= lengthOf(oldObject, path))) return [];
    return [`${path.join('.')}: has ${length} entries, of which a Service has at most ${most}`];
  });
}

function lengthOf(object: Mapping, path: readonly string[]): number {
  let value: unknown = object;
  for (const name of path) value = isMapping(value) ? value[name] : null;
  return Array.isArray(value) ? value.length : 0;
}

/** Whether judging a Service takes so long that others are answered meanwhile. */
function isLarge(object: Mapping): boolean {
  const [ports = 0, externalIPs = 0, ranges = 0, ingress = 0] = LISTS.map((path) => lengthOf(object, path));
  return Math.max(1, ports) * (1 + externalIPs + ingress) > LARGE || ranges > LARGE;
}

function fewWarnings({ first, count }: Texts): readonly string[] {
  const shown = first.map((text) => cutText(printableLine(text), MAX_WARNING_BYTES));
  return count > MAX_WARNINGS ? [...shown, `and ${count - MAX_WARNINGS} more`] : shown;
}

/** In steps that take a few milliseconds each. */
function* objections(
  object: Mapping,
  { cluster, policy, names }: Grounds & { readonly cluster: Cluster; readonly policy: ServicePolicy },
): Generator<readonly Objection[]> {
  try {
    const { row, warnings } = translateService(object, names);
    yield warnings.map(fieldObjection);
    // Another proxy's.
    if (row === null) return;
    for (const problems of claimProblemSteps(row, cluster)) yield problems.map(claimObjection);
    for (const some of inParts(row.externalIPs, LARGE)) yield notGranted(row.namespace, some, policy);
  } catch (error) {
    if (!(error instanceof TranslateError)) throw error;
    yield error.problems.map((problem) => ({ ...fieldObjection(problem), rule: 'unusable' }));
  }
}

/** Fields that a user or a load balancer writes, and what an entry that is left out of them is. Others are the API server's. */
const WRITTEN_FIELDS: Readonly<Record<string, ServiceRule>> = {
  'spec.externalIPs': 'unusable',
  'status.loadBalancer.ingress': 'unusable',
  'spec.loadBalancerSourceRanges': 'sourceRanges',
};

/** The place in a list is no part of what is wrong. */
function fieldObjection(problem: FieldProblem): Objection {
  const { path, value, detail } = problem;
  const [field = ''] = path.split('[', 1);
  const key = String(new FieldProblem(field, value, detail));
  return { rule: WRITTEN_FIELDS[field] ?? null, key, text: String(problem), isGivenOut: false };
}

const RULES: Readonly<Record<Exclude<ClaimProblem['rule'], 'frontends'>, ServiceRule>> = {
  conflict: 'conflicts',
  port: 'ports',
  'node-address': 'nodeAddresses',
  'service-range': 'serviceRanges',
  'pod-range': 'podRanges',
  'source-ranges': 'sourceRanges',
};

const GIVEN_OUT = ['spec.clusterIPs', 'spec.ports', 'spec.healthCheckNodePort'];

function claimObjection({ rule, path, value, problem, standing }: ClaimProblem): Objection {
  const text = `${path}: ${value} ${problem}`;
  // Fewer than before are still too many, and must not be refused.
  if (rule === 'frontends') return { rule, key: rule, text, isGivenOut: false };
  return { rule: standing === 'due' ? null : RULES[rule], key: text, text, isGivenOut: GIVEN_OUT.includes(path) };
}

/** External IPs outside those of the policy: a user who may write Services could use them to attract other traffic (CVE-2020-8554). */
function notGranted(namespace: string, addresses: readonly IPAddress[], policy: ServicePolicy): readonly Objection[] {
  return addresses
    .filter((address) => !mayHave(policy, namespace, address))
    .map((address) => {
      const text = `spec.externalIPs: ${address} is none that namespace ${namespace} may have`;
      return { rule: 'externalIPs', key: text, text, isGivenOut: false };
    });
}
