// Runs under Windows' Node: does what its argument says by the addon, a line of JSON for each step.
import { setTimeout as pause } from 'node:timers/promises';
import type { HcnChange, HcnOperation } from '../../../src/native/contract.js';
import { isNativeError } from '../../../src/native/errors.js';
import { loadAddon } from '../../../src/native/load.js';

const { hcn } = loadAddon();

function shown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shown);
  if (!(value instanceof Error)) return value;
  const { message } = value;
  return isNativeError(value) ? Object.assign({}, value, { message }) : { name: value.name, message };
}

/** Steps are calls of the subsystem by name; `watch` answers the first change. */
const calls: Readonly<Record<string, (...args: readonly never[]) => Promise<unknown>>> = {
  version: () => hcn.hcnVersion(),
  ids: (kind) => hcn.hcnIds(kind),
  list: (kind, ids) => hcn.hcnList(kind, ids),
  apply: (operations: readonly HcnOperation[]) => hcn.hcnApply(operations),
  /** Whether the call had an answer before JavaScript went on. */
  aside: async () => {
    let answered = false;
    const version = hcn.hcnVersion().then(() => (answered = true));
    await Promise.resolve();
    const before = answered;
    await version;
    return [before, answered];
  },
  many: async (count: number, operation: HcnOperation) => {
    const made = await Promise.all(Array.from({ length: count }, () => hcn.hcnApply([operation])));
    return new Set(made.flat()).size;
  },
  watch: async (operation: HcnOperation) => {
    const seen: HcnChange[] = [];
    const stop = await hcn.hcnWatch((change) => seen.push(change));
    await hcn.hcnApply([operation]);
    while (seen.length === 0) await pause(5);
    stop();
    stop();
    return seen[0];
  },
};

const steps = JSON.parse(process.argv[2] ?? '[]') as readonly (readonly [name: string, ...args: readonly never[]])[];
for (const [name, ...args] of steps) {
  const answer = await Promise.resolve()
    .then(() => calls[name]?.(...args))
    .catch((error: unknown) => error);
  process.stdout.write(`${JSON.stringify(shown(answer))}\n`);
}
