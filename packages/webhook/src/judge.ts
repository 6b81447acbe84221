import { isDeepStrictEqual } from 'node:util';
import { FAMILIES } from '../../../src/base/ip.js';
import { cutText } from '../../../src/base/outside-text.js';
import { printableLine } from '../../../src/base/printable.js';
import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import type { RuleAction, ServiceRule } from '../../../src/config/kinds/admission.js';
import { claimProblemSteps, type ClaimProblem, type Cluster } from '../../../src/plan/claim-problems.js';
import { frontendCount } from '../../../src/plan/frontend-count.js';
import { FieldProblem, TranslateError } from '../../../src/sources/translate/errors.js';
import type { Interner } from '../../../src/sources/translate/intern.js';
import { translateService } from '../../../src/sources/translate/service.js';
import type { ServiceRow } from '../../../src/state/rows.js';
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
  const found = yield* objections(object, grounds);
  if (found.length > LARGE) yield;
  const before = new Set<string>();
  if (oldObject !== null) {
    const ofOld = isAlike(object, oldObject) ? found : yield* objections(oldObject, grounds);
    for (const { key } of ofOld) before.add(key);
  }
  if (before.size > LARGE) yield;
  const refused: string[] = [];
  const warned: string[] = [];
  for (const { rule, key, text, isGivenOut } of found) {
    const action: RuleAction = rule === null ? 'Warn' : (policy.actions.get(rule) ?? 'Refuse');
    if (action === 'Ignore') continue;
    const isRefused = action === 'Refuse' && !before.has(key) && !(request.dryRun && isGivenOut);
    (isRefused ? refused : warned).push(text);
  }
  return {
    refusal: refused.length === 0 ? null : refusalOf(refused),
    warnings: fewWarnings(warned),
  };
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

/** Texts beyond the limit are not even made printable: there may be thousands. */
function refusalOf(texts: readonly string[]): string {
  const all = texts
    .slice(0, MAX_REFUSAL_BYTES)
    .join('; ')
    .slice(0, 2 * MAX_REFUSAL_BYTES);
  return cutText(printableLine(all), MAX_REFUSAL_BYTES);
}

/** Entries of a list, or frontends, that take a millisecond or so. */
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

function fewWarnings(texts: readonly string[]): readonly string[] {
  const shown = texts.slice(0, MAX_WARNINGS).map((text) => cutText(printableLine(text), MAX_WARNING_BYTES));
  return texts.length > MAX_WARNINGS ? [...shown, `and ${texts.length - MAX_WARNINGS} more`] : shown;
}

/** Pauses between its steps where they take long. */
function* objections(
  object: Mapping,
  { cluster, policy, names }: Grounds & { readonly cluster: Cluster; readonly policy: ServicePolicy },
): Work<readonly Objection[]> {
  const isLong = LISTS.some((path) => lengthOf(object, path) > LARGE);
  if (isLong) yield;
  try {
    const { row, warnings } = translateService(object, names);
    const found = warnings.map(fieldObjection);
    // Another proxy's.
    if (row === null) return found;
    const isLarge = isLong || FAMILIES.some((family) => frontendCount(family, row) > LARGE);
    if (isLarge) yield;
    for (const problems of claimProblemSteps(row, cluster)) {
      for (const problem of problems) found.push(claimObjection(problem));
      if (isLarge) yield;
    }
    for (const objection of notGranted(row, policy)) found.push(objection);
    return found;
  } catch (error) {
    if (!(error instanceof TranslateError)) throw error;
    return error.problems.map((problem) => ({ ...fieldObjection(problem), rule: 'unusable' }));
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
function notGranted({ namespace, externalIPs }: ServiceRow, policy: ServicePolicy): readonly Objection[] {
  return externalIPs
    .filter((address) => !mayHave(policy, namespace, address))
    .map((address) => {
      const text = `spec.externalIPs: ${address} is none that namespace ${namespace} may have`;
      return { rule: 'externalIPs', key: text, text, isGivenOut: false };
    });
}
