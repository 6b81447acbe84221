import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import { cutText } from '../../../src/base/outside-text.js';
import { printableLine } from '../../../src/base/printable.js';
import { COMPARED_RESOURCES, MAX_NODE_PROBLEMS, type NodeProblem } from '../../page/src/node-answer.js';
import type { Compared } from './cluster.js';
import { NoAnswer } from './proxy-asker.js';

/** The used part of a proxy's answer, checked: a compromised node must neither end the command nor keep it from the other nodes. */
export interface CheckedAnswer {
  readonly release: string;
  readonly mode: string;
  readonly startedAt: string;
  readonly services: number;
  readonly healthy: boolean;
  readonly reasons: readonly CheckedReason[];
  readonly pendingMs: number | null;
  /** At most one of each resource. */
  readonly held: readonly { readonly resource: Compared; readonly sums: readonly unknown[] }[];
  readonly problems: readonly NodeProblem[];
  readonly moreProblems: number;
}

interface CheckedReason {
  readonly kind: string;
  readonly family: string | null;
  readonly text: string;
  readonly since: string | null;
}

const MAX_WORD_BYTES = 64;
const MAX_TEXT_BYTES = 1024;
const MAX_REASONS = 50;
/** The limit of a namespace, a slash and a name. */
const MAX_KEY_BYTES = 512;

const PROBLEMS = ['unplanned', 'quarantined', 'conflict'] as const satisfies readonly NodeProblem['problem'][];

/** @throws NoAnswer where a field that is used is missing or of another type. */
export function readNodeAnswer(answer: Mapping): CheckedAnswer {
  const { pendingMs } = answer;
  const overview = mapping(answer['overview']);
  const health = mapping(overview['health']);
  if (pendingMs !== null && !isCount(pendingMs)) throw notUnderstood();
  const { healthy } = health;
  if (typeof healthy !== 'boolean') throw notUnderstood();
  const problems = list(answer['problems']).slice(0, MAX_NODE_PROBLEMS).map(readProblem);
  return {
    release: word(overview['release']),
    mode: word(overview['mode']),
    startedAt: word(overview['startedAt']),
    services: count(overview['services']),
    healthy,
    reasons: list(health['reasons']).slice(0, MAX_REASONS).map(readReason),
    pendingMs,
    held: readHeld(list(answer['held'])),
    // Problems of a later release are of kinds that are unknown here.
    problems: problems.flatMap((problem) => problem ?? []),
    moreProblems: count(answer['moreProblems']) + problems.filter((problem) => problem === null).length,
  };
}

/** Versions by `namespace/name`. @throws NoAnswer */
export function readVersionsAnswer(answer: Mapping): ReadonlyMap<string, string> {
  const versions = new Map<string, string>();
  for (const [key, version] of Object.entries(mapping(answer['versions']))) {
    if (typeof version !== 'string' || key.length > MAX_KEY_BYTES) throw notUnderstood();
    versions.set(printableLine(key), word(version));
  }
  return versions;
}

function readReason(answer: unknown): CheckedReason {
  const { kind, family, text: why, since } = mapping(answer);
  return { kind: word(kind), family: family === null ? null : word(family), text: text(why), since: wordOrNull(since) };
}

function readProblem(answer: unknown): NodeProblem | null {
  const { service, problem, text: why } = mapping(answer);
  const name = word(problem);
  const known = PROBLEMS.find((each) => each === name);
  return known === undefined ? null : { service: text(service), problem: known, text: text(why) };
}

/** Resources of a later release are not compared. */
function readHeld(held: readonly unknown[]): CheckedAnswer['held'] {
  const read = held.slice(0, MAX_REASONS).map((each) => {
    const { resource, sums } = mapping(each);
    return { resource: word(resource), sums: list(sums) };
  });
  return COMPARED_RESOURCES.flatMap((resource) => {
    const found = read.find((each) => each.resource === resource);
    return found === undefined ? [] : [{ resource, sums: found.sums }];
  });
}

function mapping(value: unknown): Mapping {
  if (!isMapping(value)) throw notUnderstood();
  return value;
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw notUnderstood();
  return value;
}

function count(value: unknown): number {
  if (!isCount(value)) throw notUnderstood();
  return value;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** Shown beside those of other nodes. */
function word(value: unknown): string {
  return text(value, MAX_WORD_BYTES);
}

function wordOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : word(value);
}

function text(value: unknown, maxBytes = MAX_TEXT_BYTES): string {
  if (typeof value !== 'string') throw notUnderstood();
  return printableLine(cutText(value, maxBytes));
}

function notUnderstood(): NoAnswer {
  return new NoAnswer('an answer that this release does not understand', true);
}
