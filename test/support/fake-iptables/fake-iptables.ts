import { createHash } from 'node:crypto';
import type {
  AccountingAddon,
  IptablesAck,
  IptablesAddon,
  IptablesChainListing,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTable,
  IptablesTransaction,
} from '../../../src/native/contract.js';
import { jumpTarget, ruleTexts } from './rule-text.js';

type Chains = Map<string, string[]>;
type Tables = Map<IptablesTable, Chains>;

const BUILT_IN: Readonly<Record<IptablesTable, readonly string[]>> = {
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
};

/** XT_EXTENSION_MAXNAMELEN without its zero. */
const LONGEST_NAME = 28;
const LONGEST_COMMENT = 255;

/** What can go wrong: refused before anything happens, or done while the answer is lost, or a listing that fails. */
export type IptablesFault = 'refuse' | 'lose-ack' | 'fail-list' | 'fail-digests';

/** iptables behind the addon's contract, in memory: it refuses what iptables-restore and the kernel refuse, and whatever a test asks for. */
export class FakeIptables implements IptablesAddon, AccountingAddon {
  readonly faults: IptablesFault[] = [];
  readonly committed: IptablesTransaction[] = [];
  /** Listings that were answered. */
  readonly listed: { readonly tables: readonly IptablesTable[]; readonly textOf: readonly string[] }[] = [];
  flavors: readonly IptablesFlavor[] = ['legacy', 'nft'];
  /** Packets by accounting object; null: the kernel has no accounting. */
  accounts: Map<string, number> | null = null;
  /** Whether the programs know `-m nfacct`. */
  programsCount = true;
  /** By `recent` list: the clients that it saw, as text of their bytes, and how many seconds ago. */
  readonly clients = new Map<string, ReadonlyMap<string, number>>();
  /** Called after every transaction. */
  onRestored: (() => void) | null = null;
  private readonly states = new Map<string, Tables>();

  /** Rules of a chain; undefined when there is none. */
  rules(
    table: IptablesTable,
    chain: string,
    family: IptablesFamily = 'IPv4',
    flavor: IptablesFlavor = 'nft',
  ): string[] | undefined {
    return this.tables(family, flavor).get(table)?.get(chain);
  }

  /** Names of chains that are not built in. */
  chains(table: IptablesTable, family: IptablesFamily = 'IPv4', flavor: IptablesFlavor = 'nft'): readonly string[] {
    return [...(this.tables(family, flavor).get(table)?.keys() ?? [])].filter(
      (name) => !BUILT_IN[table].includes(name),
    );
  }

  /** What somebody else does: `edit` gets the chains of one table. */
  tamper(table: IptablesTable, edit: (chains: Chains) => void, flavor: IptablesFlavor = 'nft'): void {
    for (const family of ['IPv4', 'IPv6'] as const)
      edit(this.tables(family, flavor).get(table) ?? new Map<string, string[]>());
  }

  iptablesFlavors(): Promise<readonly { readonly flavor: IptablesFlavor; readonly version: string }[]> {
    return Promise.resolve(this.flavors.map((flavor) => ({ flavor, version: '1.8.9' })));
  }

  iptablesEncode({ family, operations }: IptablesTransaction): string {
    return operations.flatMap((operation) => linesOf(family, operation)).join('\n');
  }

  async iptablesDigests({ family, operations }: IptablesTransaction): Promise<readonly string[]> {
    await Promise.resolve();
    if (this.take('fail-digests')) throw new Error('out of memory');
    return operations.flatMap((operation) =>
      operation.type === 'chain' ? [digest(operation.rules.flatMap((rule) => ruleTexts(family, rule)))] : [],
    );
  }

  async iptablesRestore(transaction: IptablesTransaction): Promise<IptablesAck> {
    await Promise.resolve();
    if (this.take('refuse')) throw refusal('resource problem', 'refused');
    const { family, flavor, operations } = transaction;
    const tables = copy(this.tables(family, flavor));
    const declared = new Set<string>();
    for (const operation of operations) {
      applyOperation(tables, family, operation, declared);
      this.checkAccounts(family, operation);
    }
    for (const operation of operations) checkDeletion(tables, operation);
    checkReferences(tables);
    this.states.set(`${family} ${flavor}`, tables);
    this.committed.push(transaction);
    this.onRestored?.();
    if (this.take('lose-ack')) throw refusal('killed', 'iptables-restore');
    const lines = operations.flatMap((operation) => linesOf(family, operation));
    return { bytes: lines.join('\n').length, rules: lines.filter((line) => /^-[AID] /.test(line)).length };
  }

  async iptablesList(
    family: IptablesFamily,
    flavor: IptablesFlavor,
    tables: readonly IptablesTable[],
    textOf: readonly string[],
  ): Promise<readonly IptablesChainListing[]> {
    await Promise.resolve();
    if (this.take('fail-list')) throw refusal('cannot list', 'iptables-save');
    this.listed.push({ tables, textOf });
    return tables.flatMap((table) =>
      [...(this.tables(family, flavor).get(table) ?? [])].map(([name, rules]) => {
        const isBuiltIn = BUILT_IN[table].includes(name);
        const withText = isBuiltIn || textOf.some((prefix) => name.startsWith(prefix));
        const policy = isBuiltIn ? 'ACCEPT' : null;
        return {
          table,
          name,
          policy,
          ruleCount: rules.length,
          digest: digest(rules),
          rules: withText ? [...rules] : null,
        };
      }),
    );
  }

  iptablesRemembering(lists: readonly string[], source: Uint8Array, seconds: number): Promise<number | null> {
    const index = lists.findIndex((list) => (this.clients.get(list)?.get(source.join('.')) ?? Infinity) <= seconds);
    return Promise.resolve(index < 0 ? null : index);
  }

  async accountCreate(name: string): Promise<boolean> {
    await Promise.resolve();
    if (this.accounts === null) throw refusal('EINVAL', name);
    if (this.accounts.has(name)) return false;
    this.accounts.set(name, 0);
    return true;
  }

  async accountPackets(name: string): Promise<number | null> {
    await Promise.resolve();
    if (this.accounts === null) throw refusal('EINVAL', name);
    return this.accounts.get(name) ?? null;
  }

  private checkAccounts(family: IptablesFamily, operation: IptablesOperation): void {
    for (const line of linesOf(family, operation)) {
      const account = /-m nfacct --nfacct-name (\S+)/.exec(line)?.[1];
      if (account === undefined) continue;
      if (!this.programsCount) throw refusal("couldn't load match", 'nfacct');
      if (this.accounts?.has(account) !== true) throw refusal('no accounting object', account);
    }
  }

  private tables(family: IptablesFamily, flavor: IptablesFlavor): Tables {
    const key = `${family} ${flavor}`;
    let tables = this.states.get(key);
    if (tables === undefined) {
      const names: readonly IptablesTable[] = ['filter', 'nat', 'mangle'];
      tables = new Map(names.map((table) => [table, new Map(BUILT_IN[table].map((chain) => [chain, []]))]));
      this.states.set(key, tables);
    }
    return tables;
  }

  private take(fault: IptablesFault): boolean {
    const index = this.faults.indexOf(fault);
    if (index >= 0) this.faults.splice(index, 1);
    return index >= 0;
  }
}

function copy(tables: Tables): Tables {
  return new Map(
    [...tables].map(([table, chains]) => [table, new Map([...chains].map(([name, rules]) => [name, [...rules]]))]),
  );
}

function applyOperation(
  tables: Tables,
  family: IptablesFamily,
  operation: IptablesOperation,
  declared: Set<string>,
): void {
  const chains = tables.get(operation.table) ?? new Map<string, string[]>();
  const held = chains.get(operation.chain);
  switch (operation.type) {
    case 'chain': {
      const id = `${operation.table} ${operation.chain}`;
      if (declared.has(id)) throw refusal('chain declared twice', id);
      if (operation.chain.length > LONGEST_NAME) throw refusal('chain name too long', id);
      declared.add(id);
      const rules = operation.rules.flatMap((rule) => ruleTexts(family, rule));
      for (const rule of rules) checkRule(rule);
      chains.set(operation.chain, rules);
      return;
    }
    case 'rule': {
      if (held === undefined) throw refusal('no chain by that name', operation.chain);
      checkRule(operation.text);
      if (operation.verb === 'insert') held.unshift(operation.text);
      else if (held.includes(operation.text)) held.splice(held.indexOf(operation.text), 1);
      else throw refusal('no such rule', operation.text);
      return;
    }
    case 'delete-chain':
      if (held === undefined) throw refusal('no chain by that name', operation.chain);
      chains.delete(operation.chain);
  }
}

function checkRule(text: string): void {
  const comment = /--comment "([^"]*)"/.exec(text)?.[1] ?? '';
  if (comment.length > LONGEST_COMMENT) throw refusal('comment too long', text);
  if (/ {2}|\n/.test(text) || text.trim() !== text) throw refusal('not the spelling of iptables-save', text);
}

function checkDeletion(tables: Tables, operation: IptablesOperation): void {
  if (operation.type !== 'delete-chain') return;
  for (const [name, rules] of tables.get(operation.table) ?? []) {
    if (rules.some((rule) => jumpTarget(rule) === operation.chain)) throw refusal(`in use by ${name}`, operation.chain);
  }
}

function checkReferences(tables: Tables): void {
  for (const [table, chains] of tables) {
    const finished = new Set<string>();
    const visit = (name: string, way: readonly string[]): void => {
      if (way.includes(name)) throw refusal('loop', [...way, name].join(' → '));
      if (finished.has(name)) return;
      for (const rule of chains.get(name) ?? []) {
        const target = jumpTarget(rule);
        if (target === null) continue;
        if (!chains.has(target)) throw refusal(`no chain ${target} in ${table}`, rule);
        visit(target, [...way, name]);
      }
      finished.add(name);
    };
    for (const name of chains.keys()) visit(name, []);
  }
}

function linesOf(family: IptablesFamily, operation: IptablesOperation): readonly string[] {
  const { table, chain } = operation;
  switch (operation.type) {
    case 'chain':
      return [
        `${table} :${chain}`,
        ...operation.rules.flatMap((rule) => ruleTexts(family, rule)).map((rule) => `-A ${chain} ${rule}`),
      ];
    case 'rule':
      return [`${operation.verb === 'insert' ? '-I' : '-D'} ${chain} ${operation.text}`];
    case 'delete-chain':
      return [`-X ${chain}`];
  }
}

function digest(rules: readonly string[]): string {
  return createHash('sha256').update(rules.join('\n')).digest('hex').slice(0, 16);
}

function refusal(message: string, object: string): Error {
  return new Error(`iptables restore: ${message}: ${object}`);
}
