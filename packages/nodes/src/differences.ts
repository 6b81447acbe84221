import { digestPart } from '../../../src/base/version-digest.js';
import type { Difference } from './api.js';
import type { ActualVersions, Compared, ProxyPod } from './cluster.js';
import { readVersionsAnswer, type CheckedAnswer } from './node-answer.js';
import type { ProxyAsker } from './proxy-asker.js';

export interface Differences {
  readonly objects: readonly Difference[];
  /** There are others, which were not looked at. */
  readonly more: boolean;
}

/** Of a node that is far behind, some objects are as informative as all. */
const MAX_PARTS = 4;
/** A node that makes up objects is not to fill the report. */
export const MAX_OBJECTS = 1000;

/**
 * What of a node's answer differs from what the API server holds.
 *
 * @throws NoAnswer
 */
export async function differencesOf(
  asker: Pick<ProxyAsker, 'ask'>,
  pod: ProxyPod,
  { held }: Pick<CheckedAnswer, 'held'>,
  actual: ReadonlyMap<Compared, ActualVersions>,
  signal: AbortSignal,
): Promise<Differences> {
  const objects: Difference[] = [];
  let more = false;
  for (const { resource, sums } of held) {
    const there = actual.get(resource);
    if (there === undefined) continue;
    const parts = there.sums.flatMap((sum, part) => (sum === sums[part] ? [] : [part]));
    more ||= parts.length > MAX_PARTS;
    for (const part of parts.slice(0, MAX_PARTS)) {
      const answer = await asker.ask(
        pod,
        `api/versions?${new URLSearchParams({ resource, part: String(part) }).toString()}`,
        signal,
      );
      const found = compare(resource, readVersionsAnswer(answer), versionsOfPart(there, part));
      const room = MAX_OBJECTS - objects.length;
      more ||= found.length > room;
      objects.push(...found.slice(0, room));
    }
  }
  return { objects, more };
}

function compare(
  resource: Compared,
  held: ReadonlyMap<string, string>,
  actual: ReadonlyMap<string, string>,
): readonly Difference[] {
  return [...new Set([...held.keys(), ...actual.keys()])]
    .map((object) => ({ resource, object, held: held.get(object) ?? null, actual: actual.get(object) ?? null }))
    .filter((difference) => difference.held !== difference.actual)
    .sort((one, other) => (one.object < other.object ? -1 : 1));
}

function versionsOfPart({ versions }: ActualVersions, part: number): ReadonlyMap<string, string> {
  return new Map([...versions].filter(([key]) => digestPart(key) === part));
}

/** Those that were there before and still are: what the node holds has not moved, though the API server had another version already then. */
export function lasting(before: Differences, now: Differences): Differences {
  const held = new Map(before.objects.map(({ resource, object, held }) => [`${resource} ${object}`, held]));
  const objects = now.objects.filter(
    ({ resource, object, held: still }) => held.get(`${resource} ${object}`) === still,
  );
  return { objects, more: before.more && now.more };
}
