import { Allocation } from './addresses.js';
import { listed, type Case, type ObjectSpec } from './case.js';
import { DIFFERENCES } from './differences.js';
import { isThere, parseExpectation, parseTarget } from './flows.js';
import { manifests } from './objects.js';

const ID = /^[a-z][a-z0-9-]{2,50}$/;

/**
 * Errors of cases, each with its case's id: none where a run of them says something. A case that expects nothing is wrong.
 *
 * @param behaviours text of docs/develop/behaviour.md, which has every id that cases show.
 */
export function problems(cases: readonly Case[], behaviours: string): readonly string[] {
  const ids = new Set<string>();
  return cases.flatMap((each) => {
    const { id } = each;
    const found = [
      ...(ids.has(id) ? ['its id is taken'] : []),
      ...(ID.test(id) ? [] : ['its id is no name of a namespace']),
      ...problemsOf(each, behaviours),
    ];
    ids.add(id);
    return found.map((problem) => `${id}: ${problem}`);
  });
}

function problemsOf(each: Case, behaviours: string): readonly string[] {
  const { title, shows, steps, own } = each;
  const found: string[] = [];
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      found.push(error instanceof Error ? error.message : String(error));
    }
  };
  if (title.trim() === '') found.push('it has no title');
  if (shows.length === 0) found.push('it shows no behaviour');
  for (const shown of [...shows, ...steps.flatMap(({ flows }) => flows.flatMap((flow) => flow.shows ?? []))])
    for (const id of shown.match(/\b[A-Z]{1,2}-\d+\b/g) ?? [])
      if (!behaviours.includes(id)) found.push(`it shows ${id}, which behaviour.md does not have`);
  if (steps.length === 0) found.push('it has no steps');
  const allocation = new Allocation(0);
  let objects: readonly ObjectSpec[] | null = null;
  for (const [index, step] of steps.entries()) {
    const where = `step ${index + 1}`;
    objects = step.objects ?? objects;
    if (objects === null) found.push(`${where} has no objects, nor has one before it`);
    else if (step.objects !== undefined) attempt(() => manifests(each.id, allocation, step.objects ?? []));
    if (step.flows.length === 0) found.push(`${where} expects nothing`);
    if ((step.acts ?? []).length > 0 && own === undefined) found.push(`${where} acts, but the process is not its own`);
    for (const { from, to, expect, source, differs = {} } of step.flows) {
      if (listed(from).length === 0 || listed(to).length === 0) found.push(`${where} has a flow that sends nothing`);
      for (const text of [...listed(to), ...(source === undefined ? [] : [`${source}:0`])])
        attempt(() => {
          if (!isThere(parseTarget(text), each)) throw new Error(`${where}: there is no "${text}"`);
        });
      for (const text of [expect, ...Object.values(differs)]) attempt(() => parseExpectation(text));
      for (const name of Object.keys(differs))
        if (!Object.hasOwn(DIFFERENCES, name)) found.push(`${where}: there is no difference "${name}"`);
    }
  }
  return found;
}
