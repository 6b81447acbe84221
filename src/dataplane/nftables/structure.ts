import type { Family } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { classChains, parseClassName } from './classes.js';
import {
  addChain,
  addRule,
  addSet,
  addTable,
  deleteTable,
  flushChain,
  type Chain,
  type SetDeclaration,
  type TableName,
} from './json.js';
import { chainText, emptyKernelTable, type KernelTable } from './kernel-table.js';
import { COUNTED, NFT_FAMILY, TABLE, affinitySecondsOf, countedSet } from './names.js';
import { parseSharedChain, sharedChain } from './remember-chains.js';
import { affinitySets, countedSets, staticSets } from './schema.js';
import { skeletonChains } from './skeleton.js';

type Command = ReturnType<typeof addSet>;

/** Commands that bring tables, sets, chains and rules where they should be, in the order in which they have to run. */
export interface StructureChange {
  /** Something in the table cannot be changed in place: it has to be made {@link Structure.anew}. */
  readonly rebuild: boolean;
  /** Before any element: table, sets and chains, then the rules of each class chain. What is in one list stays in one transaction. */
  readonly before: readonly (readonly Command[])[];
  /** After the elements: the rules that send packets to them. */
  readonly after: readonly Command[];
  /** Canonical texts that the kernel holds once the commands were acknowledged. */
  readonly sets: ReadonlyMap<string, string>;
  readonly chains: ReadonlyMap<string, string>;
}

const UNCHANGED: StructureChange = { rebuild: false, before: [], after: [], sets: new Map(), chains: new Map() };

/** Renders structure and compares it with the kernel by canonical text, which the addon makes the same way from commands and from listings. */
export class Structure {
  private readonly where: TableName;
  private readonly statics: readonly SetDeclaration[];
  private readonly ofTimeouts = new Map<number, readonly SetDeclaration[]>();
  private readonly compiledSets = new Map<string, string>();
  private readonly compiledChains = new Map<string, string>();

  /** @param counts whether packets are counted that are refused or dropped. */
  constructor(
    private readonly addon: Pick<NftablesAddon, 'nftCompile'>,
    private readonly family: Family,
    private readonly counts: boolean,
    table: string = TABLE,
  ) {
    this.where = { family: NFT_FAMILY[family], table };
    this.statics = [...staticSets(family), ...(counts ? countedSets(family) : [])];
  }

  /** Sets of a table that has these affinity timeouts. */
  sets(affinityTimeouts: readonly number[]): readonly SetDeclaration[] {
    return [...this.statics, ...affinityTimeouts.flatMap((seconds) => this.setsOfTimeout(seconds))];
  }

  private setsOfTimeout(seconds: number): readonly SetDeclaration[] {
    let sets = this.ofTimeouts.get(seconds);
    if (sets === undefined) {
      sets = affinitySets(this.family, seconds);
      this.ofTimeouts.set(seconds, sets);
    }
    return sets;
  }

  /** Chains of the named classes, without duplicates, those needed first before the others. */
  classes(names: Iterable<string>, node: NodePlan): readonly Chain[] {
    const chains = new Map<string, Chain>();
    for (const name of names) {
      const service = parseClassName(name);
      const shared = parseSharedChain(name);
      if (service !== null) for (const chain of classChains(service, node)) chains.set(chain.name, chain);
      if (shared !== null) chains.set(name, sharedChain(NFT_FAMILY[this.family], shared));
    }
    return [...chains.values()];
  }

  /**
   * @param classNames the class chains wanted; with `rules` false only those the kernel lacks are looked at, and of the sets those of timeouts that it lacks.
   * @param leftOut chains that stay as they are.
   */
  change(
    kernel: KernelTable,
    node: NodePlan,
    classNames: ReadonlySet<string>,
    affinityTimeouts: readonly number[],
    rules: boolean,
    leftOut: ReadonlySet<string> = new Set(),
  ): StructureChange {
    const lacking = affinityTimeouts.filter((seconds) =>
      this.setsOfTimeout(seconds).some(({ name }) => !kernel.sets.has(name)),
    );
    const sets = rules ? this.sets(affinityTimeouts) : lacking.flatMap((seconds) => this.setsOfTimeout(seconds));
    const wanted = rules ? [...classNames] : [...classNames].filter((name) => !kernel.chains.has(name));
    // As it is for nearly every change.
    if (!rules && lacking.length === 0 && wanted.length === 0 && kernel.sets.size > 0) return UNCHANGED;
    const classes = this.classes(wanted, node);
    const skeleton = rules || lacking.length > 0 ? skeletonChains(node, affinityTimeouts, this.counts) : [];
    const rebuild =
      sets.some((set) => this.conflicts(kernel.sets.get(set.name), this.setText(set))) ||
      [...skeleton, ...classes].some((chain) =>
        this.conflicts(hookOf(kernel.chains.get(chain.name)), hookOf(this.chainText(chain))),
      );
    if (rebuild) return { rebuild, before: [], after: [], sets: new Map(), chains: new Map() };
    const newSets = sets.filter((set) => !kernel.sets.has(set.name));
    const objects: Command[] = kernel.sets.size === 0 ? [addTable(this.where)] : [];
    objects.push(...newSets.map((set) => addSet(this.where, set)));
    const chains = new Map<string, string>();
    const changed = [...skeleton, ...classes].filter(
      (chain) => !leftOut.has(chain.name) && kernel.chains.get(chain.name) !== this.chainText(chain),
    );
    for (const chain of changed) {
      if (!kernel.chains.has(chain.name)) objects.push(addChain(this.where, chain));
      chains.set(chain.name, this.chainText(chain));
    }
    const rulesOf = (chain: Chain): readonly Command[] => [
      ...(kernel.chains.has(chain.name) ? [flushChain(this.where, chain.name)] : []),
      ...chain.rules.map((rule) => addRule(this.where, chain.name, rule)),
    ];
    const before = [objects, ...changed.filter((chain) => classes.includes(chain)).map(rulesOf)];
    const after = changed.filter((chain) => !classes.includes(chain)).flatMap(rulesOf);
    return { rebuild, before, after, sets: new Map(newSets.map((set) => [set.name, this.setText(set)])), chains };
  }

  /** The same for a table made anew after the one in the kernel was removed. */
  anew(node: NodePlan, classNames: ReadonlySet<string>, affinityTimeouts: readonly number[]): StructureChange {
    const { before, ...rest } = this.change(emptyKernelTable(), node, classNames, affinityTimeouts, true);
    const [objects = [], ...rules] = before;
    const removal = [addTable(this.where), deleteTable(this.where)];
    return { ...rest, rebuild: true, before: [[...removal, ...objects], ...rules] };
  }

  /** Names of chains and sets in the kernel that the table should not have. */
  foreign(
    kernel: KernelTable,
    node: NodePlan,
    classNames: ReadonlySet<string>,
    affinityTimeouts: readonly number[],
  ): { readonly chains: readonly string[]; readonly sets: readonly string[] } {
    const chains = new Set(
      [...skeletonChains(node, affinityTimeouts, this.counts), ...this.classes(classNames, node)].map(
        ({ name }) => name,
      ),
    );
    const sets = new Set(this.sets(affinityTimeouts).map(({ name }) => name));
    return {
      chains: [...kernel.chains.keys()].filter((name) => !chains.has(name)),
      sets: [...kernel.sets.keys()].filter((name) => !sets.has(name)),
    };
  }

  /** Canonical text by name of every chain that a table should have that counts refused packets, or does not. */
  chainTexts(
    node: NodePlan,
    classNames: ReadonlySet<string>,
    affinityTimeouts: readonly number[],
    counts: boolean,
  ): ReadonlyMap<string, string> {
    const chains = [...skeletonChains(node, affinityTimeouts, counts), ...this.classes(classNames, node)];
    return new Map(chains.map((chain) => [chain.name, this.chainText(chain)]));
  }

  private chainText(chain: Chain): string {
    const key = JSON.stringify(chain);
    let text = this.compiledChains.get(key);
    if (text === undefined) {
      const rules = chain.rules.map((rule) => addRule(this.where, chain.name, rule));
      const commands = [addChain(this.where, chain), ...rules];
      const [listing] = this.addon.nftCompile(this.where.family, this.where.table, commands).chains;
      text = listing === undefined ? '' : chainText(listing);
      this.compiledChains.set(key, text);
    }
    return text;
  }

  private setText(set: SetDeclaration): string {
    let text = this.compiledSets.get(set.name);
    if (text === undefined) {
      const [listing] = this.addon.nftCompile(this.where.family, this.where.table, [addSet(this.where, set)]).sets;
      text = listing?.declaration ?? '';
      this.compiledSets.set(set.name, text);
    }
    return text;
  }

  private conflicts(held: string | undefined, wanted: string | undefined): boolean {
    return held !== undefined && held !== wanted;
  }
}

/** Whether a chain is for some frontends and not for all, and so none of those in which the others' rules are. */
export function isClassChain(name: string): boolean {
  return /^(?:nodeport-)?(?:local-)?(?:pick|external)-/.test(name) || parseSharedChain(name) !== null;
}

/** Timeouts for which the kernel has affinity sets. */
export function timeoutsOf(kernel: KernelTable): readonly number[] {
  const timeouts = new Set<number>();
  for (const name of kernel.sets.keys()) {
    const seconds = affinitySecondsOf(name);
    if (seconds !== null) timeouts.add(seconds);
  }
  return [...timeouts].sort((one, other) => one - other);
}

/** Whether the kernel has sets that count refused packets. */
export function hasCounters(kernel: KernelTable): boolean {
  return COUNTED.every(({ of }) => kernel.sets.has(countedSet(of)));
}

/** The first line of a chain's text: its hook, empty for regular chains. */
function hookOf(text: string | undefined): string | undefined {
  return text?.split('\n', 1)[0];
}
