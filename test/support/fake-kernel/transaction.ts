import type { Chain, ChainHook, Rule, SetDeclaration } from '../../../src/dataplane/nftables/json.js';
import type {
  NftablesAddon,
  NftCommand,
  NftCommandsOperation,
  NftElementsOperation,
  NftFamily,
  NftTransaction,
} from '../../../src/native/contract.js';
import { addElements, deleteElements } from './elements.js';
import { KernelError, Refusal } from './kernel-error.js';
import { references, typeLength, type FakeChain, type FakeRule, type FakeSet, type FakeTable } from './table.js';

type Compiler = Pick<NftablesAddon, 'nftCompile'>;

/** A command of the libnftables JSON schema, one object under one verb. */
type Command = Readonly<Record<string, Readonly<Record<string, CommandBody>>>>;

interface CommandBody {
  readonly name?: string;
  readonly chain?: string;
  readonly expr?: Rule;
  readonly type?: string | readonly string[];
  readonly map?: string | readonly string[];
  readonly flags?: SetDeclaration['flags'];
  readonly timeout?: number;
  readonly size?: number;
  readonly hook?: ChainHook['hook'];
  readonly prio?: number;
}

export interface KernelQuirks {
  /** Kernels before 6.2: what a map's elements refer to is let go of only after the transaction that deletes them. */
  readonly lateRelease: boolean;
  /** Kernels without CONFIG_NF_CONNTRACK_TIMEOUT. */
  readonly withoutTimeouts: boolean;
  /** Expressions whose modules cannot be loaded, such as `numgen`: nft_expr_type_get answers ENOENT for them. */
  readonly lacking: ReadonlySet<string>;
}

export interface TransactionResult {
  readonly table: FakeTable | null;
  /** Whether it did anything: the ruleset's generation counts only transactions that did. */
  readonly changed: boolean;
}

/**
 * Applies one transaction to a table (null: there is none) the way nf_tables does: operation after operation on the state the ones before left,
 * and all of them or none. The given table is not touched.
 *
 * @throws KernelError with the errno of Linux 6.18.
 */
export function applyTransaction(
  table: FakeTable | null,
  transaction: NftTransaction,
  compiler: Compiler,
  quirks: KernelQuirks,
): TransactionResult {
  const draft = new Draft(table, transaction, compiler, quirks);
  for (const [index, operation] of transaction.operations.entries()) {
    if (operation.type === 'commands') draft.runCommands(operation, index);
    else {
      refusing(index, `${operation.verb} element ${operation.set}`, () => {
        draft.changeElements(operation);
      });
    }
  }
  return { table: draft.table, changed: draft.changed };
}

function refusing(index: number, object: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new KernelError(error.errno, 'nft transaction', { object, index, element: error.element });
  }
}

/** Elements of a set that has no size of its own and that a rule writes to (nft_dynset_init, all kernels so far). */
const DYNAMIC_SIZE = 0xffff;

class Draft {
  table: FakeTable | null;
  changed = false;
  /** Names of chains and sets that are already copies. */
  private readonly owned = new Set<object>();
  /** Chains that deleted elements referred to; see {@link KernelQuirks.lateRelease}. */
  private readonly released = new Set<string>();

  constructor(
    table: FakeTable | null,
    private readonly transaction: NftTransaction,
    private readonly compiler: Compiler,
    private readonly quirks: KernelQuirks,
  ) {
    this.table =
      table === null
        ? null
        : {
            chains: new Map(table.chains),
            sets: new Map(table.sets),
            timeouts: new Map(table.timeouts),
          };
  }

  changeElements(operation: NftElementsOperation): void {
    const set = this.writableSet(operation.set);
    const before = set.elements.size;
    if (operation.verb === 'delete') {
      for (const { chain } of deleteElements(set, operation)) this.release(chain);
      this.changed ||= set.elements.size !== before;
      return;
    }
    addElements(set, operation, this.existing().chains);
    this.changed ||= set.elements.size !== before;
    const chains = operation.gotoChains;
    if (chains === null || !hasLoop(this.existing())) return;
    throw new Refusal(
      'EMLINK',
      chains.findIndex((chain) => leadsBack(this.existing(), chain)),
    );
  }

  runCommands({ commands }: NftCommandsOperation, index: number): void {
    // Throws ERR_NFT_JSON for what the compiler does not take.
    this.compiler.nftCompile(this.transaction.family, this.transaction.table, commands);
    // What compiles has this form. Copied, as by the real one: whoever sent it may go on writing.
    for (const command of structuredClone(commands) as readonly Command[]) {
      const [verb = '', objects = {}] = Object.entries(command)[0] ?? [];
      const [kind = '', body = {}] = Object.entries(objects)[0] ?? [];
      refusing(index, `${verb} ${kind} ${body.name ?? body.chain ?? ''}`, () => {
        this.run(verb, kind, body);
      });
    }
  }

  private writableSet(name: string): FakeSet {
    const { sets } = this.existing();
    const set = sets.get(name);
    if (set === undefined) throw new Refusal('ENOENT');
    if (this.owned.has(set)) return set;
    const copy = { ...set, elements: new Map(set.elements) };
    this.owned.add(copy);
    sets.set(name, copy);
    return copy;
  }

  private release(chain: string | null): void {
    if (chain !== null && this.quirks.lateRelease) this.released.add(chain);
  }

  private existing(): FakeTable {
    if (this.table === null) throw new Refusal('ENOENT');
    return this.table;
  }

  private run(verb: string, kind: string, body: CommandBody): void {
    const name = body.name ?? '';
    switch (`${verb} ${kind}`) {
      case 'add table':
        this.changed ||= this.table === null;
        this.table ??= { chains: new Map(), sets: new Map(), timeouts: new Map() };
        return;
      case 'delete table':
        this.existing();
        this.changed = true;
        this.table = null;
        return;
      case 'add chain':
        this.addChain(name, body);
        return;
      case 'flush chain':
        this.flushChain(name);
        return;
      case 'delete chain':
        this.deleteChain(name);
        return;
      case 'add rule':
        this.addRule(body);
        return;
      case 'add set':
      case 'add map':
        this.addSet(name, body);
        return;
      case 'add ct timeout':
        this.addTimeout(name, body);
        return;
      case 'delete ct timeout':
        this.deleteTimeout(name);
        return;
      case 'flush set':
      case 'flush map':
        this.flushSet(name);
        return;
      case 'delete set':
      case 'delete map':
        this.deleteSet(name);
        return;
      default:
        throw new TypeError(`the fake kernel does not know "${verb} ${kind}"`);
    }
  }

  private writableChain(name: string): FakeChain {
    const { chains } = this.existing();
    const chain = chains.get(name);
    if (chain === undefined) throw new Refusal('ENOENT');
    if (this.owned.has(chain)) return chain;
    const copy = { ...chain, rules: [...chain.rules] };
    this.owned.add(copy);
    chains.set(name, copy);
    return copy;
  }

  private flushChain(name: string): void {
    const chain = this.writableChain(name);
    this.changed ||= chain.rules.length > 0;
    chain.rules.length = 0;
  }

  private addChain(name: string, { type, hook, prio }: CommandBody): void {
    const { chains } = this.existing();
    const chainHook =
      hook === undefined
        ? null
        : { type: type === 'nat' ? ('nat' as const) : ('filter' as const), hook, prio: prio ?? 0 };
    const [listing] = this.compile([addChainCommand(this.transaction, name, chainHook)]).chains;
    const held = chains.get(name);
    // The kernel counts a chain or set added again as an update, even of nothing.
    this.changed = true;
    if (held !== undefined) {
      // Adding a chain again may leave out its hook, but not change it.
      if (chainHook === null || held.hookText === listing?.hook) return;
      const otherType = held.hook !== null && held.hook.type !== chainHook.type;
      throw new Refusal(otherType ? 'EEXIST' : 'EOPNOTSUPP');
    }
    const chain: FakeChain = { name, hook: chainHook, hookText: listing?.hook ?? null, rules: [] };
    this.owned.add(chain);
    chains.set(name, chain);
  }

  private deleteChain(name: string): void {
    const table = this.existing();
    const chain = table.chains.get(name);
    if (chain === undefined) throw new Refusal('ENOENT');
    if (this.released.has(name) || isReferred(table, name)) throw new Refusal('EBUSY');
    this.changed = true;
    table.chains.delete(name);
  }

  private addRule({ chain: name = '', expr = [] }: CommandBody): void {
    const { chains, sets, timeouts } = this.existing();
    const chain = this.writableChain(name);
    for (const name of this.quirks.lacking)
      if (JSON.stringify(expr).includes(`{"${name}":`)) throw new Refusal('ENOENT');
    const { family, table } = this.transaction;
    const command = { add: { rule: { family, table, chain: name, expr } } };
    const referred = references(expr);
    for (const set of referred.sets) if (!sets.has(set)) throw new Refusal('ENOENT');
    for (const timeout of referred.timeouts) if (!timeouts.has(timeout)) throw new Refusal('ENOENT');
    for (const target of referred.chains) {
      const found = chains.get(target);
      if (found === undefined) throw new Refusal('ENOENT');
      if (found.hook !== null) throw new Refusal('EOPNOTSUPP');
    }
    const text = this.compile([addChainCommand(this.transaction, name, null), command]).chains[0]?.rules[0];
    const rule: FakeRule = { statements: expr, text: text ?? '' };
    this.changed = true;
    chain.rules.push(rule);
    for (const name of updatedSets(expr)) this.limit(name);
    const leads =
      referred.chains.length > 0 || referred.sets.some((set) => sets.get(set)?.declaration.map === 'verdict');
    if (leads && leadsBack(this.existing(), name) && hasLoop(this.existing())) throw new Refusal('EMLINK');
  }

  /** nft_dynset_init: the first rule that writes to a set without a size gives it one. */
  private limit(name: string): void {
    const { sets } = this.existing();
    const set = sets.get(name);
    if (set === undefined || set.declaration.size !== null) return;
    const { family, table } = this.transaction;
    const { type, map, flags, timeout } = set.declaration;
    const body = { type, ...(map === null ? {} : { map }), flags, ...(timeout === null ? {} : { timeout }) };
    const kind = map === null ? 'set' : 'map';
    const command = { add: { [kind]: { ...body, size: DYNAMIC_SIZE, family, table, name } } };
    const limited: FakeSet = {
      ...set,
      declaration: { ...set.declaration, size: DYNAMIC_SIZE },
      text: this.compile([command]).sets[0]?.declaration ?? '',
      elements: new Map(set.elements),
    };
    this.owned.add(limited);
    sets.set(name, limited);
  }

  /** An object that is there stays as it is, whatever is asked of it (nf_tables_newobj: it has no update). */
  private addTimeout(name: string, body: CommandBody): void {
    if (this.quirks.withoutTimeouts) throw new Refusal('ENOENT');
    const { timeouts } = this.existing();
    this.changed = true;
    if (timeouts.has(name)) return;
    const { family, table } = this.transaction;
    const [listing] = this.compile([{ add: { 'ct timeout': { ...body, family, table, name } } }]).objects;
    timeouts.set(name, { name, text: listing?.declaration ?? '' });
  }

  private deleteTimeout(name: string): void {
    const { timeouts, chains } = this.existing();
    if (!timeouts.has(name)) throw new Refusal('ENOENT');
    for (const { rules } of chains.values())
      if (rules.some(({ statements }) => references(statements).timeouts.includes(name))) throw new Refusal('EBUSY');
    this.changed = true;
    timeouts.delete(name);
  }

  private addSet(name: string, body: CommandBody): void {
    const { sets } = this.existing();
    const declaration = declarationOf(name, body);
    const held = sets.get(name);
    // The default timeout and the size of a set can be changed in place, nothing else can.
    if (held !== undefined && kindOf(held.declaration) !== kindOf(declaration)) throw new Refusal('EEXIST');
    const { family, table } = this.transaction;
    const kind = declaration.map === null ? 'set' : 'map';
    const [listing] = this.compile([{ add: { [kind]: { ...body, family, table, name } } }]).sets;
    const set: FakeSet = {
      name,
      declaration,
      text: listing?.declaration ?? '',
      keyLength: typeLength(declaration.type),
      dataLength: declaration.map === null || declaration.map === 'verdict' ? 0 : typeLength(declaration.map),
      elements: new Map(held?.elements),
    };
    this.changed = true;
    this.owned.add(set);
    sets.set(name, set);
  }

  private flushSet(name: string): void {
    const set = this.writableSet(name);
    for (const { chain } of set.elements.values()) this.release(chain);
    this.changed ||= set.elements.size > 0;
    set.elements.clear();
  }

  private deleteSet(name: string): void {
    const table = this.existing();
    const set = table.sets.get(name);
    if (set === undefined) throw new Refusal('ENOENT');
    for (const { rules } of table.chains.values())
      for (const { statements } of rules) if (references(statements).sets.includes(name)) throw new Refusal('EBUSY');
    for (const { chain } of set.elements.values()) this.release(chain);
    this.changed = true;
    table.sets.delete(name);
  }

  private compile(commands: readonly NftCommand[]): ReturnType<Compiler['nftCompile']> {
    const { family, table } = this.transaction;
    return this.compiler.nftCompile(family, table, commands);
  }
}

function addChainCommand(
  { family, table }: { readonly family: NftFamily; readonly table: string },
  name: string,
  hook: Chain['hook'],
): NftCommand {
  return { add: { chain: { family, table, name, ...(hook === null ? {} : { ...hook, policy: 'accept' }) } } };
}

function declarationOf(name: string, { type = [], map, flags, timeout, size }: CommandBody): SetDeclaration {
  const list = (types: string | readonly string[]): readonly string[] => (typeof types === 'string' ? [types] : types);
  return {
    name,
    type: list(type),
    map: map === undefined ? null : map === 'verdict' ? 'verdict' : list(map),
    flags: flags ?? [],
    timeout: timeout ?? null,
    size: size ?? null,
  };
}

function kindOf({ type, map, flags }: SetDeclaration): string {
  return JSON.stringify([type, map, [...flags].sort()]);
}

/** Sets and maps that a rule writes to. */
function updatedSets(statements: Rule): readonly string[] {
  return statements.flatMap((statement) => {
    if ('set' in statement) return [statement.set.set.slice(1)];
    return 'map' in statement ? [statement.map.map.slice(1)] : [];
  });
}

function isReferred(table: FakeTable, chain: string): boolean {
  for (const { name, rules } of table.chains.values()) {
    if (name === chain) continue;
    if (rules.some(({ statements }) => references(statements).chains.includes(chain))) return true;
  }
  for (const { elements } of table.sets.values())
    for (const element of elements.values()) if (element.chain === chain) return true;
  return false;
}

/** Whether a chain leads back to itself, through rules or through the verdicts of a map. */
function leadsBack(table: FakeTable, chain: string): boolean {
  const seen = new Set<string>();
  const waiting = [...successors(table, chain)];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (name === chain) return true;
    if (seen.has(name)) continue;
    seen.add(name);
    waiting.push(...successors(table, name));
  }
  return false;
}

/** Whether a packet could go round in circles. Chains that no hook leads to are never walked, so the kernel does not mind. */
function hasLoop(table: FakeTable): boolean {
  const finished = new Set<string>();
  const path = new Set<string>();
  const visit = (name: string): boolean => {
    if (finished.has(name)) return false;
    if (path.has(name)) return true;
    path.add(name);
    for (const next of successors(table, name)) if (visit(next)) return true;
    path.delete(name);
    finished.add(name);
    return false;
  };
  return [...table.chains.values()].some(({ name, hook }) => hook !== null && visit(name));
}

function successors(table: FakeTable, name: string): ReadonlySet<string> {
  const next = new Set<string>();
  for (const { statements } of table.chains.get(name)?.rules ?? []) {
    const referred = references(statements);
    for (const chain of referred.chains) next.add(chain);
    for (const set of referred.sets) {
      if (table.sets.get(set)?.declaration.map !== 'verdict') continue;
      for (const { chain } of table.sets.get(set)?.elements.values() ?? []) if (chain !== null) next.add(chain);
    }
  }
  return next;
}
