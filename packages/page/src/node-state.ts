import { setImmediate as turn } from 'node:timers/promises';
import { digestPart, DIGEST_PARTS, VersionDigest } from '../../../src/base/version-digest.js';
import { printCount, printHolder } from '../../../src/plan/text.js';
import { pendingMs, type FamilyView, type RunningProcess } from '../../../src/serve/running-process.js';
import {
  COMPARED_RESOURCES,
  MAX_NODE_PROBLEMS,
  type HeldResource,
  type NodeAnswer,
  type NodeProblem,
  type VersionsAnswer,
} from './node-answer.js';
import { overview } from './overview.js';
import { numberOf, oneOf } from './query.js';
import { serviceOf } from '../../../src/plan/frontend-key.js';

/** How many objects are looked at before others have their turn: about a millisecond. */
const AT_ONCE = 4096;

/** How this node's proxy is doing, and what it holds. */
export async function nodeAnswer(running: RunningProcess): Promise<NodeAnswer> {
  const held: HeldResource[] = [];
  for (const resource of COMPARED_RESOURCES) {
    const versions = running.kubernetes.versionsOf(resource);
    if (versions !== null) held.push({ resource, count: versions.size, sums: await sumsOf(versions) });
  }
  const problems = running.families.flatMap((family) => problemsOf(family, running));
  return {
    overview: overview(running),
    pendingMs: pendingMs(running),
    held,
    problems: problems.slice(0, MAX_NODE_PROBLEMS),
    moreProblems: Math.max(0, problems.length - MAX_NODE_PROBLEMS),
  };
}

/** The versions of one part of a resource. @throws AskedWrongly */
export async function versionsAnswer(running: RunningProcess, query: URLSearchParams): Promise<VersionsAnswer> {
  const resource = oneOf(query, 'resource', COMPARED_RESOURCES);
  const part = numberOf(query, 'part', -1, 0, DIGEST_PARTS - 1);
  const found: [string, string][] = [];
  await inTurns(running.kubernetes.versionsOf(resource) ?? [], (key, version) => {
    if (digestPart(key) === part) found.push([key, version]);
  });
  return { versions: Object.fromEntries(found) };
}

async function sumsOf(versions: ReadonlyMap<string, string>): Promise<readonly number[]> {
  const digest = new VersionDigest();
  await inTurns(versions, (key, version) => {
    digest.add(key, version);
  });
  return digest.sums;
}

/** What changes meanwhile may be seen or not. */
async function inTurns(
  versions: Iterable<readonly [key: string, version: string]>,
  look: (key: string, version: string) => void,
): Promise<void> {
  let count = 0;
  for (const [key, version] of versions) {
    look(key, version);
    if (++count % AT_ONCE === 0) await turn();
  }
}

function problemsOf({ family, table }: FamilyView, { progress }: RunningProcess): readonly NodeProblem[] {
  return [
    ...[...table.unplanned].map(([service, reason]): NodeProblem => ({
      service,
      problem: 'unplanned',
      text: `${family}: ${reason}`,
    })),
    ...(progress.of(family)?.quarantined ?? []).map(({ frontend, servicePort, reason }): NodeProblem => ({
      service: servicePort === null ? frontend : serviceOf(servicePort),
      problem: 'quarantined',
      text: `${frontend}: ${reason}`,
    })),
    ...table.conflictPairs().map((pair): NodeProblem => ({
      service: serviceOf(pair.first.loser),
      problem: 'conflict',
      text: `${family} ${printHolder(pair.first)}${printCount(pair)}`,
    })),
  ];
}
