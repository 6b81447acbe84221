import type { Test } from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { labMode } from '../support/lab/mode.js';
import { CASES } from './cases/index.js';
import { AN_OUTCOME, Count } from './count.js';
import { judge } from './judge.js';

/** The environment of a program that renders no rule that matches: `CHAIN: RULE`, see support/lab/leaving-out-addon.cjs. */
export function leavingOut(rule: string): Readonly<Record<string, string>> {
  return {
    POINTSMAN_ADDON: projectFile('test/support/lab/leaving-out-addon.cjs'),
    POINTSMAN_LEFT_OUT: rule,
  };
}

/** For each rule in turn: packets show that the program lacks it. None is a rule that the laboratory's own Service needs: the process would never be ready. */
export async function eachIsNoticed(t: Test, rules: readonly string[]): Promise<void> {
  for (const rule of rules) {
    const env = leavingOut(rule);
    // What compares the kernel with the plan renders no such rule either.
    Object.assign(process.env, env);
    const count = new Count([], () => undefined);
    // A case that fails may not end as it should, and what it leaves behind may end the next ones.
    const end = (error: unknown): void => {
      t.comment(`${rule}: ${error instanceof Error ? error.message : String(error)}`);
    };
    await judge(count, CASES, { mode: labMode(), env }).catch(end);
    await count.end().catch(end);
    const noticed = count.outcomes.filter(({ found, expected }) => found !== expected && expected !== AN_OUTCOME);
    t.ok(noticed.length > 0, `${rule}: ${noticed.length} of ${count.outcomes.length} outcomes are others`);
    t.comment(
      `${rule}: ${noticed.length} of ${count.outcomes.length}; ${JSON.stringify(noticed[0] ?? count.outcomes.find(({ expected }) => expected === AN_OUTCOME))}`,
    );
  }
}
