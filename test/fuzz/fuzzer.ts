import { memoryUsage } from 'node:process';
import { cpuTime } from '../support/cpu-time.js';
import { SeededRandom } from '../support/random.js';
import { hostileText } from './mutations.js';
import { TARGETS, type Target } from './targets.js';

/** A text that was not read as it must be. */
export interface Find {
  readonly target: string;
  readonly round: number;
  readonly text: string;
  readonly problem: string;
}

/**
 * Lets one target read one text, both chosen by seed and round; null: all was well. Nothing may be thrown but what the target expects, and CPU time, memory and
 * what is said of the text stay within what its length allows.
 */
export async function fuzzOnce(seed: number, round: number): Promise<Find | null> {
  const random = new SeededRandom(Math.imul(seed, 1_000_003) + round);
  const target = random.pick(TARGETS);
  const text = hostileText(target.documents, random, target.maxLength);
  const problem = await problemOf(target, text);
  return problem === null ? null : { target: target.name, round, text, problem };
}

const TRIES = 3;
const MAX_SAID_CHARS = 400_000;

async function problemOf(target: Target, text: string): Promise<string | null> {
  const allowed = allowance(target, text);
  let cost = { ms: Infinity, bytes: Infinity };
  let reported = '';
  // The least of a few: compiling and collecting garbage come by chance.
  for (let attempt = 0; attempt < TRIES && (cost.ms > allowed.ms || cost.bytes > allowed.bytes); attempt++) {
    const before = memoryUsage().heapUsed;
    try {
      const ms = await cpuTime(async () => (reported = await target.read(text)));
      const bytes = memoryUsage().heapUsed - before;
      cost = { ms: Math.min(cost.ms, ms), bytes: Math.min(cost.bytes, bytes) };
    } catch (error) {
      return `threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    }
  }
  if (cost.ms > allowed.ms) return `took ${Math.round(cost.ms)} ms of CPU time, ${Math.round(allowed.ms)} are allowed`;
  if (cost.bytes > allowed.bytes) return `took ${cost.bytes} bytes of memory, ${allowed.bytes} are allowed`;
  return reported.length > MAX_SAID_CHARS ? `${reported.length} characters are said of it` : null;
}

/** A tenth of a second, and per megabyte 50 ms where JSON is read as such, otherwise 1 s: what the YAML parser takes for the smallest values there are. */
function allowance(target: Target, text: string): { readonly ms: number; readonly bytes: number } {
  const megabytes = text.length / 2 ** 20;
  return {
    ms: 100 + (target.readsJson && isJson(text) ? 50 : 1000) * megabytes + (text.length > SMALL_CHARS ? 200 : 0),
    bytes: 32 * 2 ** 20 + 400 * text.length,
  };
}

/** Larger YAML is parsed in a thread, which has to start. */
const SMALL_CHARS = 1 << 17;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
