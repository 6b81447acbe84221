import type { Test } from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { labMode } from '../support/lab/mode.js';
import { CASES, SHARED } from './cases/index.js';
import { AN_OUTCOME, Count, type Found } from './count.js';
import { judge } from './judge.js';

/** The environment of a program that renders no rule that matches: `CHAIN: RULE`, see support/lab/leaving-out-addon.cjs. */
export function leavingOut(rule: string): Readonly<Record<string, string>> {
  return {
    POINTSMAN_ADDON: projectFile('test/support/lab/leaving-out-addon.cjs'),
    POINTSMAN_LEFT_OUT: rule,
  };
}

/**
 * For each rule in turn: packets show that the program lacks it. None is a rule that the laboratory's own Service needs, or the process would never be
 * ready. Cases with a process of their own come only where the others have noticed nothing.
 */
export async function eachIsNoticed(t: Test, rules: readonly string[]): Promise<void> {
  const own = CASES.filter((each) => !SHARED.includes(each));
  for (const rule of rules) {
    const env = leavingOut(rule);
    // What compares the kernel with the plan renders no such rule either.
    Object.assign(process.env, env);
    const outcomes: Found[] = [];
    const noticed = (): readonly Found[] =>
      outcomes.filter(({ found, expected }) => found !== expected && expected !== AN_OUTCOME);
    for (const cases of [SHARED, own]) {
      if (noticed().length > 0) break;
      const count = new Count(outcomes, () => undefined);
      // A case that fails may not end as it should, and what it leaves behind may end the next ones.
      const end = (error: unknown): void => {
        t.comment(`${rule}: ${error instanceof Error ? error.message : String(error)}`);
      };
      await judge(count, cases, { mode: labMode(), env }).catch(end);
      await count.end().catch(end);
    }
    const [first] = noticed();
    t.ok(first, `${rule}: ${noticed().length} of ${outcomes.length} outcomes are others`);
    if (first !== undefined) t.comment(`${first.outcome}: ${first.found}`);
  }
}
