import type { Family } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { chainsOf, objectsOf, parseAffinityChain, setsOf } from './affinity/chains.js';
import { classChainNames, classChains, parseClassName } from './classes.js';
import {
  addChain,
  addRule,
  addSet,
  addTable,
  addTimeout,
  deleteTable,
  flushChain,
  flushSet,
  type Chain,
  type SetDeclaration,
  type TableName,
  type TimeoutDeclaration,
} from './json.js';
import { chainText, emptyTable, type HeldTable } from './listing.js';
import { CHAIN, COUNTED, NFT_FAMILY, TABLE, countChain, countedSet } from './names.js';
import { declarationNamed, parseRetryChain, retryChains, retryClassesOfNode, type RetryTimeouts } from './retry.js';
import { countedSets, staticSets } from './schema.js';
import { skeletonChains } from './skeleton.js';

type Command = ReturnType<typeof addSet>;

/** Commands that bring tables, sets, chains and rules where they should be, in the order in which they have to run. */
export interface StructureChange {
  /** Something in the table cannot be changed in place: it has to be made {@link Structure.anew}. */
  readonly rebuild: boolean;
  /** Before any element: table, sets and chains, then the rules of each class chain. One list stays in one transaction. */
  readonly before: readonly (readonly Command[])[];
  /** After the elements: the rules that send packets to them. */
  readonly after: readonly Command[];
  /** Canonical texts that the kernel holds once the commands were acknowledged. */
  readonly sets: ReadonlyMap<string, string>;
  readonly objects: ReadonlyMap<string, string>;
  readonly chains: ReadonlyMap<string, string>;
}

const NOTHING = { sets: new Map<never, never>(), objects: new Map<never, never>(), chains: new Map<never, never>() };
const UNCHANGED: StructureChange = { rebuild: false, before: [], after: [], ...NOTHING };

/** Renders structure and compares it with the kernel by canonical text, which the addon makes the same way from commands and from listings. */
export class Structure {
  private readonly where: TableName;
  private readonly statics: readonly SetDeclaration[];
  private readonly staticNames: ReadonlySet<string>;
  /** Canonical texts by name, with what they were compiled from: of what the table has, see {@link forget}. */
  private readonly compiled = new Map<string, { readonly source: string; readonly text: string }>();

  /** The timeouts of unanswered attempts; null: this kernel has none. */
  timeouts: RetryTimeouts | null = null;

  /** @param counts whether packets are counted that are refused or dropped. */
  constructor(
    private readonly addon: Pick<NftablesAddon, 'nftCompile'>,
    private readonly family: Family,
    private readonly counts: boolean,
    table: string = TABLE,
  ) {
    this.where = { family: NFT_FAMILY[family], table };
    this.statics = [...staticSets(family), ...(counts ? countedSets(family) : [])];
    this.staticNames = new Set([
      ...this.statics.map(({ name }) => name),
      ...Object.values(CHAIN),
      ...(counts ? COUNTED.map(({ of }) => countChain(of)) : []),
    ]);
  }

  /** Sets of a table that has the named chains. */
  sets(classNames: Iterable<string>): readonly SetDeclaration[] {
    return [...this.statics, ...this.setsOf(classNames)];
  }

  /** Those that there are for chains of a Service port's own. */
  private setsOf(classNames: Iterable<string>): readonly SetDeclaration[] {
    const sets = new Map<string, SetDeclaration>();
    for (const name of classNames) {
      const affinity = parseAffinityChain(name);
      if (affinity !== null) for (const set of setsOf(affinity, this.family)) sets.set(set.name, set);
    }
    return [...sets.values()];
  }

  /** The named chains and those that they lead to, without duplicates, those needed first before the others. */
  classes(names: Iterable<string>, node: NodePlan): readonly Chain[] {
    const chains = new Map<string, Chain>();
    for (const name of names) {
      const service = parseClassName(name);
      const affinity = service === null ? parseAffinityChain(name) : null;
      if (service !== null)
        for (const chain of [...retryChains(service.retry, this.timeouts), ...classChains(service, node)])
          chains.set(chain.name, chain);
      if (affinity !== null) for (const chain of chainsOf(affinity, node)) chains.set(chain.name, chain);
    }
    return [...chains.values()];
  }

  /** Whether a table has it independent of its frontends. */
  isStatic(name: string): boolean {
    return this.staticNames.has(name);
  }

  /**
   * @param classNames the chains wanted for frontends; with `rules` false only those the kernel lacks are looked at.
   * @param isUsed whether frontends in the kernel lead to a chain or set. If none does, nothing has updated it: it is compared,
   *   and clients are forgotten.
   * @param leftOut chains that stay unchanged.
   */
  change(
    kernel: HeldTable,
    node: NodePlan,
    classNames: ReadonlySet<string>,
    isUsed: (name: string) => boolean,
    rules: boolean,
    leftOut: ReadonlySet<string> = new Set(),
  ): StructureChange {
    const named = [...classNames].filter((name) => rules || !kernel.chains.has(name) || !isUsed(name));
    // As it is for nearly every change.
    if (!rules && named.length === 0 && kernel.sets.size > 0) return UNCHANGED;
    const sets = rules ? this.sets(named) : this.setsOf(named);
    const classes = this.classes(named, node);
    const skeleton = rules ? skeletonChains(node, this.counts, this.timeouts) : [];
    const timeouts = this.timeoutsOf(named, rules ? node : null);
    const rebuild =
      sets.some((set) => this.conflicts(kernel.sets.get(set.name), this.setText(set))) ||
      [...skeleton, ...classes].some((chain) =>
        this.conflicts(hookOf(kernel.chains.get(chain.name)), hookOf(this.chainText(chain))),
      ) ||
      timeouts.some((timeout) => this.conflicts(kernel.objects.get(timeout.name), this.timeoutText(timeout)));
    if (rebuild) return { rebuild, before: [], after: [], ...NOTHING };
    const newSets = sets.filter((set) => !kernel.sets.has(set.name));
    const unused = sets.filter(({ name }) => kernel.sets.has(name) && !this.isStatic(name) && !isUsed(name));
    const objects: Command[] = kernel.sets.size === 0 ? [addTable(this.where)] : [];
    const newTimeouts = timeouts.filter(({ name }) => !kernel.objects.has(name));
    for (const timeout of newTimeouts) objects.push(addTimeout(this.where, timeout));
    for (const set of newSets) objects.push(addSet(this.where, set));
    for (const { name } of unused) objects.push(flushSet(this.where, name));
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
    return {
      rebuild,
      before,
      after,
      sets: new Map(newSets.map((set) => [set.name, this.setText(set)])),
      objects: new Map(newTimeouts.map((timeout) => [timeout.name, this.timeoutText(timeout)])),
      chains,
    };
  }

  /** The same for a table made anew after the one in the kernel was removed. */
  anew(node: NodePlan, classNames: ReadonlySet<string>): StructureChange {
    const { before, ...rest } = this.change(emptyTable(), node, classNames, () => false, true);
    const [objects = [], ...rules] = before;
    const removal = [addTable(this.where), deleteTable(this.where)];
    return { ...rest, rebuild: true, before: [[...removal, ...objects], ...rules] };
  }

  /** Canonical text by name of every chain that a table should have that counts refused packets, or does not. */
  chainTexts(node: NodePlan, classNames: ReadonlySet<string>, counts: boolean): ReadonlyMap<string, string> {
    const chains = [...skeletonChains(node, counts, this.timeouts), ...this.classes(classNames, node)];
    return new Map(chains.map((chain) => [chain.name, this.chainText(chain)]));
  }

  /** The table does not have these any more. */
  forget(names: Iterable<string>): void {
    for (const name of names) this.compiled.delete(name);
  }

  private chainText(chain: Chain): string {
    return this.compile(chain.name, chain, () => {
      const rules = chain.rules.map((rule) => addRule(this.where, chain.name, rule));
      const commands = [addChain(this.where, chain), ...rules];
      const [listing] = this.addon.nftCompile(this.where.family, this.where.table, commands).chains;
      return listing === undefined ? '' : chainText(listing);
    });
  }

  /** Those that rules for these frontends name. @param node null: rules of the skeleton are left out. */
  private timeoutsOf(classNames: Iterable<string>, node: NodePlan | null): readonly TimeoutDeclaration[] {
    const { timeouts } = this;
    if (timeouts === null) return [];
    const classes = new Set(node === null ? [] : retryClassesOfNode(node));
    for (const name of classNames) {
      const retry = parseClassName(name)?.retry ?? null;
      if (retry !== null && retry !== 'off') classes.add(retry);
    }
    return [...classes].map((retry) => timeouts.declaration(retry));
  }

  private timeoutText(timeout: TimeoutDeclaration): string {
    return this.compile(timeout.name, timeout, () => {
      const commands = [addTimeout(this.where, timeout)];
      const [listing] = this.addon.nftCompile(this.where.family, this.where.table, commands).objects;
      return listing?.declaration ?? '';
    });
  }

  /** Canonical text of an object of ours by its name; null for any other name. */
  timeoutNamed(name: string): string | null {
    const timeout = declarationNamed(name);
    return timeout === null ? null : this.timeoutText(timeout);
  }

  private setText(set: SetDeclaration): string {
    return this.compile(set.name, set, () => {
      const [listing] = this.addon.nftCompile(this.where.family, this.where.table, [addSet(this.where, set)]).sets;
      return listing?.declaration ?? '';
    });
  }

  private compile(name: string, from: Chain | SetDeclaration | TimeoutDeclaration, text: () => string): string {
    const source = JSON.stringify(from);
    const known = this.compiled.get(name);
    if (known?.source === source) return known.text;
    const compiled = { source, text: text() };
    this.compiled.set(name, compiled);
    return compiled.text;
  }

  private conflicts(held: string | undefined, wanted: string | undefined): boolean {
    return held !== undefined && held !== wanted;
  }
}

/** Whether a chain is for some frontends and not for all, and so none of those in which the others' rules are. */
export function isClassChain(name: string): boolean {
  return (
    /^(?:nodeport-)?(?:local-)?(?:pick|external)-/.test(name) ||
    parseAffinityChain(name) !== null ||
    parseRetryChain(name) !== undefined
  );
}

/** Names of the chains and sets that are in a table because a frontend leads to a chain. */
export function objectsOfChain(name: string): readonly string[] {
  const service = parseClassName(name);
  if (service !== null) return classChainNames(service);
  const affinity = parseAffinityChain(name);
  return affinity === null ? [] : objectsOf(affinity, name);
}

/** Whether a chain or set counts refused packets. */
export function isCounter(name: string): boolean {
  return COUNTED.some(({ of }) => name === countChain(of) || name === countedSet(of));
}

/** Whether the kernel has sets that count refused packets. */
export function hasCounters(kernel: HeldTable): boolean {
  return COUNTED.every(({ of }) => kernel.sets.has(countedSet(of)));
}

/** The first line of a chain's text: its hook, empty for regular chains. */
function hookOf(text: string | undefined): string | undefined {
  return text?.split('\n', 1)[0];
}
