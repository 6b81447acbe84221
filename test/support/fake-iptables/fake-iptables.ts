import { createHash } from 'node:crypto';
import type {
  AccountingAddon,
  IptablesAck,
  IptablesAddon,
  IptablesChainCounts,
  IptablesChainListing,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTable,
  IptablesTransaction,
  TimeoutPolicy,
  TimeoutsAddon,
} from '../../../src/native/contract.js';
import { familyOf, type IPAddress } from '../../../src/base/ip.js';
import { printTarget, type KernelVerdict } from '../courses.js';
import { KernelError } from '../fake-kernel/kernel-error.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import type { SeededRandom } from '../random.js';
import { untilDifferent } from '../until-different.js';
import { applyOperation, checkDeletion, checkReferences, type Chains } from './chains.js';
import { ProgramError, refusal, refusalIn } from './program-error.js';
import { forgetRules } from './rule.js';
import { ruleTexts } from './rule-text.js';
import { clientOf, courses, trace, type TracedTables } from './trace.js';

type Tables = Map<IptablesTable, Chains>;

const BUILT_IN: Readonly<Record<IptablesTable, readonly string[]>> = {
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  raw: ['PREROUTING', 'OUTPUT'],
  security: ['INPUT', 'FORWARD', 'OUTPUT'],
};

/** What can go wrong: all or the last of the tables refused, or done while the answer is lost, or a question that fails. */
export type IptablesFault = 'refuse' | 'refuse-last' | 'lose-ack' | 'fail-list' | 'fail-digests';

const FAULTS = {
  restore: ['refuse', 'refuse-last', 'lose-ack'],
  list: ['fail-list'],
  digests: ['fail-digests'],
} as const satisfies Readonly<Record<string, readonly IptablesFault[]>>;

/** How many calls fail where faults come at random. */
const FAULT_RATE = 0.1;

/** iptables behind the addon's contract, in memory: it refuses what iptables-restore and the kernel refuse, and whatever a test asks for. */
export class FakeIptables implements IptablesAddon, AccountingAddon, TimeoutsAddon {
  readonly faults: IptablesFault[] = [];
  readonly committed: IptablesTransaction[] = [];
  /** Counts what may have changed some table, whoever did it. */
  changes = 0;
  /** Tables that were changed, as nf_tables counts them. */
  commits = 0;
  /** Listings that were answered. */
  readonly listed: { readonly tables: readonly IptablesTable[]; readonly textOf: readonly string[] }[] = [];
  flavors: readonly IptablesFlavor[] = ['legacy', 'nft'];
  /** Packets by accounting object; null: the kernel has no accounting. */
  accounts: Map<string, number> | null = null;
  /** Timeout policies of conntrack by name; null: the kernel has none. */
  policies: Map<string, TimeoutPolicy> | null = new Map<string, TimeoutPolicy>();
  /** What the kernel answers to any question about policies. */
  policyFault: string | null = null;
  /** Whether the kernel has table raw. */
  hasRaw = true;
  /** Whether the programs know `-j CT --timeout`. */
  programsTime = true;
  /** Whether the programs know `-m nfacct`. */
  programsCount = true;
  /** By `recent` list: the clients that it saw, as text of their bytes, and how many seconds ago. */
  readonly clients = new Map<string, Map<string, number>>();
  /** Whether there is such an ipset. */
  hasSet: (name: string) => boolean = () => false;
  /** Rules that the kernel does not take, as `nat KUBE-SVC-X -j …`. */
  refuses: ((rule: string) => boolean) | null = null;
  /** Matches and targets that the programs (no extension) or the kernel (no module) lack, as rules have them: `-m statistic`. */
  readonly lacking: Record<'programs' | 'kernel', Set<string>> = { programs: new Set(), kernel: new Set() };
  /** Packets by rule, as `filter KUBE-SERVICES -d …`; a chain that is written begins anew. */
  readonly packets = new Map<string, number>();
  /** Matches that the kernel does not have. */
  readonly missingMatches = new Set<string>();
  /** Called after every transaction. */
  onRestored: (() => void) | null = null;
  private readonly states = new Map<string, Tables>();
  private random: SeededRandom | null = null;

  forgetCalls(): void {
    this.committed.length = 0;
    this.listed.length = 0;
    forgetRules();
  }

  /** Lets calls fail from now on; null: no more, nor by faults that nothing has met. */
  failAtRandom(random: SeededRandom | null): void {
    this.random = random;
    if (random === null) this.faults.length = 0;
  }

  trace(packet: KernelPacket, localAddresses: readonly IPAddress[], weighted = false): KernelVerdict {
    return trace(this.traced(packet), packet, localAddresses, weighted);
  }

  /** Lets a connection to one of the endpoints happen that its first packet may go to, and remembers what the rules note of it. */
  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    const ways = courses(this.traced(packet), packet, localAddresses);
    const way = ways.find(({ packet: end }) => printTarget(end) === endpoint);
    if (way === undefined) throw new Error(`no way leads to ${endpoint}`);
    for (const list of way.packet.notes)
      this.clients.set(list, (this.clients.get(list) ?? new Map<string, number>()).set(clientOf(way.packet), 0));
  }

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

  /** The chains of a table, built-in ones too, with their rules. */
  every(
    table: IptablesTable,
    family: IptablesFamily,
    flavor: IptablesFlavor = 'nft',
  ): ReadonlyMap<string, readonly string[]> {
    return this.tables(family, flavor).get(table) ?? new Map<string, string[]>();
  }

  /** What somebody else does: `edit` gets the chains of one table. */
  tamper(table: IptablesTable, edit: (chains: Chains) => void, flavor: IptablesFlavor = 'nft'): void {
    this.changes++;
    this.commits++;
    for (const family of ['IPv4', 'IPv6'] as const)
      edit(this.tables(family, flavor).get(table) ?? new Map<string, string[]>());
  }

  /**
   * What somebody does with iptables to the rules of a proxy, or a proxy that is not ours.
   *
   * @param unexpected names of chains that nothing leads to, by their table.
   */
  harm(random: SeededRandom, unexpected: Readonly<Record<'nat' | 'filter', string>>): void {
    const table = random.pick(['nat', 'filter'] as const);
    const deed = random.below(5);
    this.tamper(table, (chains) => {
      const own = [...chains.keys()].filter((name) => name.startsWith('KUBE-'));
      const full = own.filter((name) => (chains.get(name)?.length ?? 0) > 0);
      if (full.length === 0) return;
      const chain = random.pick(full);
      const rules = chains.get(chain) ?? [];
      if (deed === 0) for (const each of chains.keys()) chains.set(each, []);
      if (deed <= 1) chains.set(chain, []);
      if (deed === 2) rules.splice(random.below(rules.length), 1);
      if (deed === 3) rules.push('-p tcp -j RETURN');
      // With iptables-restore, where nothing leads to any of ours after that.
      if (deed === 0) for (const each of own) chains.delete(each);
      if (deed === 4) chains.set(unexpected[table], []);
    });
  }

  iptablesFlavors(): Promise<readonly { readonly flavor: IptablesFlavor; readonly version: string }[]> {
    return Promise.resolve(this.flavors.map((flavor) => ({ flavor, version: '1.8.9' })));
  }

  iptablesEncode({ family, operations }: IptablesTransaction): string {
    return operations.flatMap((operation) => linesOf(family, operation)).join('\n');
  }

  async iptablesDigests({ family, operations }: IptablesTransaction): Promise<readonly string[]> {
    await Promise.resolve();
    if (this.take('digests') !== null) throw new Error('out of memory');
    return operations.flatMap((operation) =>
      operation.type === 'chain' ? [digest(operation.rules.flatMap((rule) => ruleTexts(family, rule)))] : [],
    );
  }

  async iptablesRestore(transaction: IptablesTransaction): Promise<IptablesAck> {
    await Promise.resolve();
    this.changes++;
    const fault = this.take('restore');
    const { family, flavor, operations } = transaction;
    if (!this.hasRaw && operations.some(({ table }) => table === 'raw')) throw refusal('no table', 'raw');
    const tables = [...new Set(operations.map(({ table }) => table))];
    const refused = { refuse: tables[0], 'refuse-last': tables.at(-1), 'lose-ack': undefined, none: undefined };
    for (const table of tables) {
      const own = operations.filter((operation) => operation.table === table);
      try {
        if (table === refused[fault ?? 'none']) throw refusal('resource problem', table);
        this.checkParts(family, flavor, own);
        this.checkTaste(family, flavor, own);
        const before = this.tables(family, flavor).get(table);
        const isEmpty = (operation: IptablesOperation): boolean =>
          operation.type === 'chain' && operation.rules.length === 0 && before?.get(operation.chain)?.length === 0;
        this.tables(family, flavor).set(table, this.changed(family, flavor, table, own));
        this.forgetPackets(own);
        // The kernel does not count what changes nothing.
        if (!own.every(isEmpty)) this.commits++;
      } catch (error) {
        throw error instanceof ProgramError && error.object === null ? refusalIn(table, error) : error;
      }
      this.forgetClients();
    }
    this.committed.push(transaction);
    this.onRestored?.();
    if (fault === 'lose-ack') throw new ProgramError('took too long', 'ETIMEDOUT', null);
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
    if (this.take('list') !== null) throw refusal('cannot list', 'iptables-save');
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

  /** Each takes one. */
  iptablesListingMs(): number {
    return this.listed.length;
  }

  async iptablesSizes(family: IptablesFamily): Promise<string> {
    await Promise.resolve();
    const tables = [...this.tables(family, 'legacy')];
    return tables.map(([table, chains]) => `${table} ${[...chains.values()].flat().join('').length}`).join();
  }

  /** Looks when the period is over, by the machine's time. */
  iptablesSizesWatch(family: IptablesFamily, sizes: string, periodMs: number, onChange: () => void): () => void {
    return untilDifferent(periodMs, async () => (await this.iptablesSizes(family)) === sizes, onChange);
  }

  async iptablesCounts(
    family: IptablesFamily,
    flavor: IptablesFlavor,
    table: IptablesTable,
    prefix: string,
  ): Promise<readonly IptablesChainCounts[]> {
    await Promise.resolve();
    if (this.take('list') !== null) throw refusal('cannot list', 'iptables-save');
    return [...this.every(table, family, flavor)].flatMap(([chain, all]) => {
      const packetsOf = (rule: string): number => this.packets.get(`${table} ${chain} ${rule}`) ?? 0;
      const rules = all.filter((rule) => packetsOf(rule) > 0);
      if (rules.length === 0 || BUILT_IN[table].includes(chain) || !chain.startsWith(prefix)) return [];
      return [{ chain, digest: digest(all), rules, packets: Float64Array.from(rules, packetsOf) }];
    });
  }

  iptablesMatch(_: IptablesFamily, name: string): Promise<boolean | null> {
    return Promise.resolve(!this.missingMatches.has(name));
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

  async timeoutList(): Promise<readonly TimeoutPolicy[]> {
    await Promise.resolve();
    this.checkPolicyCall();
    return [...(this.policies?.values() ?? [])];
  }

  async timeoutSet(policy: TimeoutPolicy): Promise<void> {
    await Promise.resolve();
    this.checkPolicyCall();
    this.policies?.set(policy.name, policy);
  }

  async timeoutDelete(name: string): Promise<boolean> {
    await Promise.resolve();
    const rules = [...this.states.values()].flatMap((tables) => [...(tables.get('raw')?.values() ?? [])].flat());
    if (rules.some((rule) => rule.endsWith(`--timeout ${name}`))) throw kernelError('EBUSY', name);
    return this.policies?.delete(name) ?? false;
  }

  /** As iptables 1.8.9 does: a missing extension ends the reading of the line, a missing module is noticed at COMMIT. */
  private checkParts(family: IptablesFamily, flavor: IptablesFlavor, operations: readonly IptablesOperation[]): void {
    const lines = operations.flatMap((operation) => linesOf(family, operation).map((line) => ({ operation, line })));
    const find = (words: ReadonlySet<string>): { readonly word: string; readonly place: number } | null => {
      for (const word of words) {
        const place = lines.findIndex(({ line }) => `${line} `.includes(` ${word} `));
        if (place >= 0) return { word, place };
      }
      return null;
    };
    const unread = find(this.lacking.programs);
    const refused = unread ?? find(this.lacking.kernel);
    if (refused === null) return;
    const { table } = operations[0] ?? { table: 'nat' };
    const { line = '', operation } = lines[refused.place] ?? {};
    const [, name = ''] = refused.word.split(' ');
    const kind = refused.word.startsWith('-m') ? 'match' : 'target';
    const object = `${table}: ${line}`;
    if (unread !== null)
      throw new ProgramError(
        `line ${refused.place + 3}: Couldn't load ${kind} \`${name}':No such file or directory`,
        null,
        object,
      );
    const warning = `Warning: Extension ${name} revision 0 not supported, missing kernel module?`;
    if (flavor === 'legacy')
      throw new ProgramError(`${warning} line ${lines.length + 3} failed`, null, `${table}: COMMIT`);
    const where = `rule in chain ${operation?.chain ?? ''}`;
    throw new ProgramError(
      `${warning} line ${refused.place + 3}: RULE_APPEND failed (No such file or directory): ${where}`,
      null,
      object,
    );
  }

  /** The kernel names the rule to the programs of nft alone. */
  private checkTaste(family: IptablesFamily, flavor: IptablesFlavor, operations: readonly IptablesOperation[]): void {
    const { refuses } = this;
    if (refuses === null) return;
    for (const [index, operation] of operations.entries()) {
      const { table, chain } = operation;
      for (const line of linesOf(family, operation)) {
        const rule = line.replace(`-A ${chain} `, '');
        if (rule === line || !refuses(`${table} ${chain} ${rule}`)) continue;
        if (flavor === 'legacy') throw new ProgramError(`line ${index + 9} failed`, null, `${table}: COMMIT`);
        throw new ProgramError(`line ${index + 3}: RULE_APPEND failed (Invalid argument)`, null, `${table}: ${line}`);
      }
    }
  }

  private checkAccounts(family: IptablesFamily, operation: IptablesOperation): void {
    for (const line of linesOf(family, operation)) {
      const account = /-m nfacct --nfacct-name (\S+)/.exec(line)?.[1];
      if (account === undefined) continue;
      if (!this.programsCount) throw refusal("couldn't load match", 'nfacct');
      if (this.accounts?.has(account) !== true) throw refusal('no accounting object', account);
    }
  }

  private checkPolicyCall(): void {
    const errno = this.policies === null ? 'EINVAL' : this.policyFault;
    if (errno !== null) throw kernelError(errno, null);
  }

  private checkPolicies(family: IptablesFamily, operation: IptablesOperation): void {
    for (const line of linesOf(family, operation)) {
      const [, protocol, name] = /-p (tcp|udp) .*-j CT --timeout (\S+)/.exec(line) ?? [];
      if (name === undefined) continue;
      if (!this.programsTime) throw refusal("couldn't load target", 'CT');
      const policy = this.policies?.get(name);
      const isRight = policy?.family === family && policy.protocol === (protocol === 'tcp' ? 6 : 17);
      if (!isRight) throw refusal('No such timeout policy', name);
    }
  }

  private checkSets(family: IptablesFamily, operation: IptablesOperation): void {
    for (const line of linesOf(family, operation)) {
      const set = /-m set (?:! )?--match-set (\S+)/.exec(line)?.[1];
      if (set !== undefined && !this.hasSet(set)) throw refusal(`Set ${set} doesn't exist.`, line);
    }
  }

  private tables(family: IptablesFamily, flavor: IptablesFlavor): Tables {
    const key = `${family} ${flavor}`;
    let tables = this.states.get(key);
    if (tables === undefined) {
      const names: readonly IptablesTable[] = ['filter', 'nat', 'mangle', 'raw'];
      tables = new Map(names.map((table) => [table, new Map(BUILT_IN[table].map((chain) => [chain, []]))]));
      this.states.set(key, tables);
    }
    return tables;
  }

  /** A table after the operations on it. */
  private changed(
    family: IptablesFamily,
    flavor: IptablesFlavor,
    table: IptablesTable,
    operations: readonly IptablesOperation[],
  ): Chains {
    const held = this.tables(family, flavor).get(table) ?? new Map<string, string[]>();
    const chains: Chains = new Map([...held].map(([name, rules]) => [name, [...rules]]));
    const declared = new Set<string>();
    for (const type of ['chain', 'rule', 'delete-chain'] as const) {
      for (const operation of operations.filter((each) => each.type === type)) {
        applyOperation(chains, family, operation, declared);
        this.checkAccounts(family, operation);
        this.checkSets(family, operation);
        this.checkPolicies(family, operation);
      }
    }
    for (const operation of operations) checkDeletion(chains, operation);
    checkReferences(table, chains);
    return chains;
  }

  private forgetPackets(operations: readonly IptablesOperation[]): void {
    for (const { type, table, chain } of operations)
      for (const rule of type === 'rule' ? [] : this.packets.keys())
        if (rule.startsWith(`${table} ${chain} `)) this.packets.delete(rule);
  }

  /** A `recent` list is there as long as a rule names it. */
  private forgetClients(): void {
    if (this.clients.size === 0) return;
    const named = new Set<string>();
    for (const tables of this.states.values())
      for (const rules of tables.get('nat')?.values() ?? [])
        for (const rule of rules) named.add(/-m recent .*--name (\S+)/.exec(rule)?.[1] ?? '');
    for (const list of this.clients.keys()) if (!named.has(list)) this.clients.delete(list);
  }

  /** The rules that a packet meets. */
  traced({ destination }: KernelPacket): TracedTables {
    const tables = this.tables(familyOf(destination), 'nft');
    return {
      rules: (table, chain) => tables.get(table)?.get(chain),
      seen: (list, client) => this.clients.get(list)?.get(client) ?? Infinity,
    };
  }

  private take<Call extends keyof typeof FAULTS>(call: Call): (typeof FAULTS)[Call][number] | null {
    const kinds: readonly (typeof FAULTS)[Call][number][] = FAULTS[call];
    const planned = kinds.find((kind) => this.faults.includes(kind));
    if (planned !== undefined) {
      this.faults.splice(this.faults.indexOf(planned), 1);
      return planned;
    }
    return this.random?.chance(FAULT_RATE) === true ? this.random.pick(kinds) : null;
  }
}

const RULE_OPTIONS = { insert: '-I', append: '-A', delete: '-D' } as const;

function linesOf(family: IptablesFamily, operation: IptablesOperation): readonly string[] {
  const { table, chain } = operation;
  switch (operation.type) {
    case 'chain':
      return [
        `${table} :${chain}`,
        ...operation.rules.flatMap((rule) => ruleTexts(family, rule)).map((rule) => `-A ${chain} ${rule}`),
      ];
    case 'rule':
      return [`${RULE_OPTIONS[operation.verb]} ${chain} ${operation.text}`];
    case 'delete-chain':
      return [`-X ${chain}`];
  }
}

function kernelError(errno: string, object: string | null): KernelError {
  return new KernelError(errno, 'timeout policies', { object, index: null, element: null });
}

function digest(rules: readonly string[]): string {
  return createHash('sha256').update(rules.join('\n')).digest('hex').slice(0, 16);
}
