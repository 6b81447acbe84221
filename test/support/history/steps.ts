import type { ApiObject } from '../api-objects.js';
import type { SeededRandom } from '../random.js';
import { NAMES, sliceName, someNode, someService, someSlice, type Name } from './objects.js';

/** What happens to a node, one thing after the other. Each step makes sense whichever of those before it are left out. */
export type Step =
  | { readonly does: 'put'; readonly object: ApiObject }
  | { readonly does: 'delete'; readonly kind: 'Service' | 'EndpointSlice'; readonly name: string }
  /** The process follows the API server, if that answers, and programs what it knows. */
  | { readonly does: 'sync' }
  /** The same, with calls into the kernel that fail. */
  | { readonly does: 'sync with faults'; readonly seed: number }
  /** The process is killed at a write to the kernel, before or after it happened; another one starts. */
  | { readonly does: 'kill the process'; readonly write: number; readonly happened: boolean }
  /** The API server breaks its connections, answers nothing, or forgets old versions. */
  | { readonly does: 'kill the server' | 'freeze the server' | 'compact the server' | 'restore the server' }
  /** Somebody else changes the rules. `reported`: the process is told. */
  | { readonly does: 'harm'; readonly seed: number; readonly reported: boolean }
  | { readonly does: 'wait'; readonly ms: number }
  /** Two sync periods later all is compared with a first start. */
  | { readonly does: 'compare' };

const STEPS_OF_ROUND = 10;

/** A history of so many rounds, each of which ends in a comparison. */
export function someHistory(random: SeededRandom, rounds: number): readonly Step[] {
  let variants = 0;
  const round = (): readonly Step[] => [
    ...Array.from({ length: STEPS_OF_ROUND }, () => someSteps(random, () => variants++)).flat(),
    { does: 'compare' },
  ];
  return Array.from({ length: rounds }, round).flat();
}

function someSteps(random: SeededRandom, nextVariant: () => number): readonly Step[] {
  const draw = random.below(100);
  const name = random.pick(NAMES);
  if (draw < 25) return someServiceSteps(random, name, nextVariant());
  if (draw < 40) return [someSliceStep(random, name)];
  if (draw < 47) return [{ does: 'delete', kind: 'Service', name }];
  if (draw < 52) return everythingOf(name);
  if (draw < 70) return [{ does: 'sync' }];
  if (draw < 74) return [{ does: 'sync with faults', seed: random.below(1_000_000) }];
  if (draw < 80) return [{ does: 'kill the process', write: random.below(12), happened: random.chance(0.5) }];
  if (draw < 88) {
    const away = random.pick(['kill the server', 'freeze the server', 'compact the server'] as const);
    return [{ does: away }, ...(random.chance(0.5) ? [{ does: 'restore the server' } as const] : [])];
  }
  if (draw < 95) return [{ does: 'harm', seed: random.below(1_000_000), reported: random.chance(0.5) }];
  if (draw < 97) return [{ does: 'put', object: someNode(random) }];
  return [{ does: 'wait', ms: random.pick([500, 2000, 60_000]) }];
}

function someServiceSteps(random: SeededRandom, name: Name, variant: number): readonly Step[] {
  const service: Step = { does: 'put', object: someService(random, name, variant) };
  const slices = random.chance(0.6) ? [someSliceStep(random, name), someSliceStep(random, name)] : [];
  return random.shuffled([service, ...slices, ...(random.chance(0.3) ? [{ does: 'sync' } as const] : [])]);
}

function someSliceStep(random: SeededRandom, name: Name): Step {
  const [family, index] = [random.pick(['IPv4', 'IPv6'] as const), random.below(2)];
  return random.chance(0.2)
    ? { does: 'delete', kind: 'EndpointSlice', name: sliceName(name, family, index) }
    : { does: 'put', object: someSlice(random, name, family, index) };
}

function everythingOf(name: Name): readonly Step[] {
  const slices = (['IPv4', 'IPv6'] as const).flatMap((family) =>
    [0, 1].map((index): Step => ({ does: 'delete', kind: 'EndpointSlice', name: sliceName(name, family, index) })),
  );
  return [{ does: 'delete', kind: 'Service', name }, ...slices];
}

/**
 * The fewest steps found that still fail, by leaving out ever smaller parts.
 *
 * @param fails asked so many times at most.
 */
export async function shrink(
  steps: readonly Step[],
  fails: (steps: readonly Step[]) => Promise<boolean>,
  tries: number,
): Promise<readonly Step[]> {
  let least = steps;
  let left = tries;
  for (let size = Math.ceil(least.length / 2); size >= 1 && left > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < least.length && left > 0;) {
      const fewer = [...least.slice(0, start), ...least.slice(start + size)];
      left--;
      if (fewer.length > 0 && (await fails(fewer))) least = fewer;
      else start += size;
    }
  }
  return least;
}
