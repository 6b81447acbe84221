import { chainsOfFrontend, type FrontendElements } from './frontend-elements.js';
import { objectsOfChain } from './structure.js';

/** Unreferenced objects stay for a while: a Service that comes back finds them. A kernel before 6.2 releases maps' references. */
export const LINGER_MS = 1000;

/**
 * Which chains and sets the frontends in the kernel lead to, counted as they come and go. So unreferenced objects are known
 * without a listing and without a look at all frontends.
 */
export class Uses {
  /** Frontends by the chain that they lead to. */
  private readonly ofChains = new Map<string, number>();
  /** Such chains by what is in the table because of them. */
  private readonly ofObjects = new Map<string, number>();
  /** Unreferenced objects, and since when; in that order. */
  private readonly idle = new Map<string, number>();

  /**
   * @param isStatic whether a table has a chain or set independent of its frontends.
   * @param now milliseconds on a clock that only goes forward.
   */
  constructor(
    private readonly isStatic: (name: string) => boolean,
    private readonly now: () => number,
  ) {}

  isUsed(name: string): boolean {
    return this.ofObjects.has(name);
  }

  /** Unreferenced objects, including those that it is not yet time to remove. */
  get unused(): ReadonlySet<string> {
    return new Set(this.idle.keys());
  }

  /** When there is something to remove; null: there is nothing. */
  get dueAt(): number | null {
    const [since] = this.idle.values();
    return since === undefined ? null : since + LINGER_MS;
  }

  /** Objects that it is time to remove, limited in number. */
  due(most: number): readonly string[] {
    const before = this.now() - LINGER_MS;
    const due: string[] = [];
    for (const [name, since] of this.idle) {
      if (since > before || due.length === most) break;
      due.push(name);
    }
    return due;
  }

  /** The kernel has other elements of a frontend than before; undefined: none. */
  replace(before: FrontendElements | undefined, after: FrontendElements | undefined): void {
    const [released, taken] = [before, after].map((elements) =>
      elements === undefined ? [] : chainsOfFrontend(elements),
    );
    for (const chain of taken ?? []) if (count(this.ofChains, chain, 1) === 1) this.countObjects(chain, 1);
    for (const chain of released ?? []) if (count(this.ofChains, chain, -1) === 0) this.countObjects(chain, -1);
  }

  /** The kernel has these chains and sets, which may be for nothing. */
  held(names: Iterable<string>): void {
    for (const name of names)
      if (!this.isUsed(name) && !this.isStatic(name) && !this.idle.has(name)) this.idle.set(name, this.now());
  }

  /** The kernel has these no more, or it is unknown what it has of them. */
  dropped(names: Iterable<string>): void {
    for (const name of names) this.idle.delete(name);
  }

  /** The kernel was seen to hold these frontends, chains and sets, and nothing else. */
  readBack(frontends: Iterable<FrontendElements>, names: Iterable<string>): void {
    this.ofChains.clear();
    this.ofObjects.clear();
    this.idle.clear();
    for (const elements of frontends) this.replace(undefined, elements);
    this.held(names);
  }

  private countObjects(chain: string, change: 1 | -1): void {
    for (const name of objectsOfChain(chain)) {
      const users = count(this.ofObjects, name, change);
      if (users === 0) this.idle.set(name, this.now());
      else this.idle.delete(name);
    }
  }
}

function count(counts: Map<string, number>, name: string, change: 1 | -1): number {
  const sum = (counts.get(name) ?? 0) + change;
  if (sum === 0) counts.delete(name);
  else counts.set(name, sum);
  return sum;
}
