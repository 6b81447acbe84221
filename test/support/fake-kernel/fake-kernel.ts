import type { IPAddress } from '../../../src/base/ip.js';
import { familyOf } from '../../../src/base/ip.js';
import type {
  AccountingAddon,
  Challenges,
  ConntrackAddon,
  FlowDeletion,
  FlowFilter,
  FlowListing,
  HcnAddon,
  IpsetAddon,
  IptablesAddon,
  IpvsAddon,
  MemoryAddon,
  PeerAddon,
  ProbeAddon,
  RelayAddon,
  SysctlAddon,
  NativeAddon,
  NftablesAddon,
  NftAck,
  NftBaseChain,
  NftElementsListing,
  NftCommand,
  NftFamily,
  NftForeignChange,
  NftOperation,
  NftSetListing,
  NftTableListing,
  NftTransaction,
  RouteAddon,
  ServiceAddon,
  TimeoutsAddon,
} from '../../../src/native/contract.js';
import { NO_PROGRAMS } from '../fake-iptables/no-programs.js';
import { printTarget, type KernelVerdict } from '../courses.js';
import type { Compiler } from './compiler.js';
import { Faults } from './faults.js';
import { FakeFlows } from './flows.js';
import { KernelError } from './kernel-error.js';
import { untilDifferent } from '../until-different.js';
import type { KernelPacket, SetUpdate } from './packet.js';
import type { FakeElement, FakeSet, FakeTable } from './table.js';
import { courses, trace } from './trace.js';
import { applyTransaction, type KernelQuirks } from './transaction.js';
import { WITHOUT_IPVS, WITHOUT_LINKS, WITHOUT_PROBES, WITHOUT_SETS } from './without-ipvs.js';

const TABLE = 'kube-proxy';

/**
 * The kernel behind the addon's contract, in memory: nf_tables with its rules of what may refer to what and its errors, conntrack, and whatever
 * faults a test asks for. Rules and declarations are spelled by the addon's own compiler, which needs no kernel.
 */
export class FakeKernel implements NativeAddon, NftablesAddon, ConntrackAddon {
  readonly nftables = this;
  readonly conntrack = this;
  readonly ipvs: IpvsAddon = WITHOUT_IPVS;
  readonly ipset: IpsetAddon = WITHOUT_SETS;
  readonly route: RouteAddon = WITHOUT_LINKS;
  readonly memory: { memoryTrim: MemoryAddon['memoryTrim'] } = { memoryTrim: () => Promise.resolve(false) };
  /** It is nobody else's kernel. */
  readonly peer: PeerAddon = {
    peerName: () => '',
    peerUser: () => null,
    limitSilence: () => true,
    silentMs: () => null,
  };
  /** Files are the machine's, whatever the kernel. */
  /** It carries no sockets of the machine. */
  readonly relay: RelayAddon = {
    relayOpen: () => ({ carry: () => 'ENOSYS', end: () => undefined, close: () => undefined }),
  };
  readonly sysctl: SysctlAddon = { sysctlWatch: () => () => undefined };
  readonly probe: ProbeAddon = WITHOUT_PROBES;
  readonly iptables: IptablesAddon;
  readonly accounting: AccountingAddon;
  readonly timeouts: TimeoutsAddon;
  readonly faults = new Faults();
  readonly flows = new FakeFlows();
  readonly quirks: KernelQuirks;
  /** Transactions that were committed, in order. */
  readonly committed: NftTransaction[] = [];
  /** Listings that were answered: which table, and of which sets the elements. */
  readonly listed: { readonly family: NftFamily; readonly elements: readonly string[] | null }[] = [];
  /** Bytes the socket takes. */
  maxBatch = Number.MAX_SAFE_INTEGER;
  private readonly tables = new Map<string, FakeTable>();
  private readonly watches = new Set<(change: NftForeignChange) => void>();
  private generation = 1;

  constructor(
    private readonly compiler: Compiler,
    quirks: Partial<KernelQuirks> = {},
    programs: IptablesAddon & AccountingAddon & TimeoutsAddon = NO_PROGRAMS,
  ) {
    this.iptables = programs;
    this.accounting = programs;
    this.timeouts = programs;
    this.quirks = { lateRelease: false, withoutTimeouts: false, lacking: new Set(), ...quirks };
  }

  /** What is of another platform is not there to be asked. */
  get hcn(): HcnAddon {
    throw new Error('the addon has no hcn on this platform');
  }

  get service(): ServiceAddon {
    throw new Error('the addon has no service on this platform');
  }

  /** The proxy's table of a family; null when there is none. */
  table(family: NftFamily): FakeTable | null {
    return this.tables.get(`${family} ${TABLE}`) ?? null;
  }

  /** Every table that there is, `ip kube-proxy`. */
  tableNames(): readonly string[] {
    return [...this.tables.keys()];
  }

  forgetCalls(): void {
    this.committed.length = 0;
    this.listed.length = 0;
  }

  trace(packet: KernelPacket, localAddresses: readonly IPAddress[]): KernelVerdict {
    return trace(this.tableFor(packet), packet, localAddresses);
  }

  /** Lets a connection to one of the endpoints happen that its first packet may go to, and remembers what the rules note of it. */
  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    const table = this.tableFor(packet);
    const ways = table === null ? [] : courses(table, packet, localAddresses);
    const way = ways.find(({ packet: end }) => printTarget(end) === endpoint);
    if (way === undefined) throw new Error(`no way leads to ${endpoint}`);
    noteUpdates(table, way.packet.updates);
  }

  /** Lets a packet come by that the rules refuse or drop, and remembers what they note of it. */
  refuse(packet: KernelPacket, localAddresses: readonly IPAddress[]): void {
    const table = this.tableFor(packet);
    const [way] = table === null ? [] : courses(table, packet, localAddresses);
    if (way?.verdict !== 'reject' && way?.verdict !== 'drop') throw new Error('nobody refuses it');
    noteUpdates(table, way.packet.updates);
  }

  /** Commits a transaction of someone else, which those who watch are told of. */
  foreign(transaction: NftTransaction, process = 'nft[7]'): void {
    this.commit(transaction);
    this.notify({ families: [transaction.family], missed: false, process });
  }

  /** Tells those who watch that they may have missed something. */
  miss(): void {
    this.notify({ families: [], missed: true, process: null });
  }

  /** Counts a transaction of someone else, on other tables. */
  touch(): void {
    this.generation = this.generation === 2 ** 32 - 1 ? 1 : this.generation + 1;
  }

  nftCompile(family: NftFamily, table: string, commands: readonly NftCommand[]): NftTableListing {
    return this.compiler.nftCompile(family, table, commands);
  }

  nftEncode(transaction: NftTransaction): Uint8Array {
    return this.compiler.nftEncode(transaction);
  }

  async nftTransact(transaction: NftTransaction): Promise<NftAck> {
    await Promise.resolve();
    const refused = this.faults.refused(transaction);
    if (refused !== null) throw refused;
    const fault = this.faults.take('transact');
    if (fault?.type === 'refuse') throw refusal(fault.errno, fault.operation);
    const bytes = this.bytesOf(transaction);
    if (bytes > this.maxBatch) throw refusal('EMSGSIZE', null);
    this.commit(transaction);
    this.committed.push(transaction);
    if (fault?.type === 'lose-ack') throw refusal('ENOBUFS', null);
    return { messages: transaction.operations.length, bytes };
  }

  async nftList(family: NftFamily, table: string, elements: readonly string[] | null): Promise<NftTableListing | null> {
    await Promise.resolve();
    const fault = this.faults.take('list');
    if (fault?.type === 'fail-list')
      throw new KernelError(fault.errno, 'nft list', { object: null, index: null, element: null });
    this.listed.push({ family, elements });
    const held = this.tables.get(`${family} ${table}`);
    if (held === undefined) return null;
    const part = fault?.type === 'truncate-list' ? fault.part : 1;
    return {
      chains: byName(held.chains).map(({ name, hookText, rules }) => ({
        name,
        hook: hookText,
        rules: rules.map(({ text }) => text),
      })),
      sets: byName(held.sets).map((set) => listSet(set, elements?.includes(set.name) ?? true, part)),
      objects: byName(held.timeouts).map(({ name, text }) => ({ name, declaration: text })),
    };
  }

  async nftElements(family: NftFamily, table: string, sets: readonly string[]): Promise<readonly NftSetListing[]> {
    await Promise.resolve();
    this.failListing('nft elements');
    this.listed.push({ family, elements: sets });
    const held = this.tables.get(`${family} ${table}`)?.sets;
    return sets.flatMap((name) => {
      const set = held?.get(name);
      return set === undefined ? [] : [listSet(set, true, 1)];
    });
  }

  /** Nobody else has rules here. */
  nftBaseChains(): Promise<readonly NftBaseChain[]> {
    return Promise.resolve([]);
  }

  async nftGeneration(): Promise<number> {
    await Promise.resolve();
    return this.generation;
  }

  /** Looks when the period is over, by the machine's time. */
  nftGenerationWatch(generation: number, periodMs: number, onChange: () => void): () => void {
    return untilDifferent(periodMs, async () => (await this.nftGeneration()) === generation, onChange);
  }

  nftMaxBatch(): number {
    return this.maxBatch;
  }

  nftWatch(table: string, onChange: (change: NftForeignChange) => void): () => void {
    if (table !== TABLE) throw new Error(`nobody should watch ${table}`);
    this.watches.add(onChange);
    return () => this.watches.delete(onChange);
  }

  /** No packets go through here. */
  nftTrace(): () => void {
    return () => undefined;
  }

  nftRule(): Promise<string | null> {
    return Promise.resolve(null);
  }

  async conntrackList(filter: FlowFilter): Promise<FlowListing> {
    await Promise.resolve();
    this.failFlows('conntrack list');
    return this.flows.list(filter);
  }

  async conntrackDelete(family: NftFamily, records: Uint8Array): Promise<FlowDeletion> {
    await Promise.resolve();
    this.failFlows('conntrack delete');
    return this.flows.delete(family, records);
  }

  async conntrackListTranslated(family: NftFamily, replySources: Uint8Array | null): Promise<FlowListing> {
    await Promise.resolve();
    this.failFlows('conntrack list');
    return this.flows.listTranslated(family, replySources);
  }

  async conntrackChallenge(family: NftFamily, records: Uint8Array): Promise<Challenges> {
    await Promise.resolve();
    this.failFlows('challenge clients');
    return this.flows.challenge(family, records);
  }

  /** Flows carry nothing here. */
  conntrackCount(): never {
    throw new Error('flows are not counted');
  }

  private commit(transaction: NftTransaction): void {
    const key = `${transaction.family} ${transaction.table}`;
    const { table, changed } = applyTransaction(this.tables.get(key) ?? null, transaction, this.compiler, this.quirks);
    if (table === null) this.tables.delete(key);
    else this.tables.set(key, table);
    if (changed) this.touch();
  }

  private notify(change: NftForeignChange): void {
    for (const watch of this.watches) setImmediate(watch, change);
  }

  private failListing(operation: string): void {
    const fault = this.faults.take('list');
    if (fault?.type === 'fail-list')
      throw new KernelError(fault.errno, operation, { object: null, index: null, element: null });
  }

  private failFlows(operation: string): void {
    const fault = this.faults.take('flows');
    if (fault?.type === 'fail-flows')
      throw new KernelError(fault.errno, operation, { object: null, index: null, element: null });
  }

  private tableFor({ destination }: KernelPacket): FakeTable | null {
    return this.table(familyOf(destination) === 'IPv4' ? 'ip' : 'ip6');
  }

  /** The real bytes only where they matter: encoding hundreds of thousands of elements takes its time. */
  private bytesOf(transaction: NftTransaction): number {
    if (this.maxBatch < Number.MAX_SAFE_INTEGER) return this.compiler.nftEncode(transaction).length;
    return transaction.operations.reduce((sum, operation) => sum + payload(operation), 0);
  }
}

/** An update refreshes what is there and changes no value. */
function noteUpdates(table: FakeTable | null, updates: readonly SetUpdate[]): void {
  for (const { set, key, value, counts } of updates) {
    const elements = table?.sets.get(set)?.elements;
    const held = elements?.get(key) ?? { key, keyEnd: null, value, chain: null, comment: null };
    elements?.set(key, counts ? { ...held, packets: (held.packets ?? 0) + 1 } : held);
  }
}

function payload(operation: NftOperation): number {
  return operation.type === 'commands'
    ? JSON.stringify(operation.commands).length
    : operation.keys.length + (operation.data?.length ?? 0);
}

function refusal(errno: string, index: number | null): KernelError {
  return new KernelError(errno, 'nft transaction', { object: null, index, element: null });
}

function byName<Item extends { readonly name: string }>(items: ReadonlyMap<string, Item>): readonly Item[] {
  return [...items.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function listSet(set: FakeSet, withElements: boolean, part: number): NftSetListing {
  const { name, text, keyLength, dataLength } = set;
  return {
    name,
    declaration: text,
    keyLength,
    dataLength,
    elements: withElements ? listElements(set, part) : null,
  };
}

/** In an order of its own, as a hash table would: by turns from both ends. */
function listElements(set: FakeSet, part: number): NftElementsListing {
  const inserted = [...set.elements.values()];
  const order = inserted.map((_, index) => (index % 2 === 0 ? index / 2 : inserted.length - 1 - (index - 1) / 2));
  const all = order.flatMap((index) => inserted[index] ?? []);
  const elements = all.slice(0, Math.floor(all.length * part));
  const column = (bytes: (element: FakeElement) => string, size: number): Uint8Array => {
    const packed = Buffer.alloc(elements.length * size);
    for (const [index, element] of elements.entries()) packed.write(bytes(element), index * size, 'latin1');
    return packed;
  };
  const { declaration } = set;
  return {
    count: elements.length,
    keys: column(({ key }) => key, set.keyLength),
    keyEnds: declaration.flags.includes('interval') ? column(({ key, keyEnd }) => keyEnd ?? key, set.keyLength) : null,
    data: set.dataLength === 0 ? null : column(({ value }) => value ?? '', set.dataLength),
    verdicts: declaration.map === 'verdict' ? elements.map(({ chain }) => `goto ${chain ?? ''}`) : null,
    comments: elements.some(({ comment }) => comment !== null) ? elements.map(({ comment }) => comment) : null,
    packets: elements.some(({ packets }) => packets !== undefined)
      ? Float64Array.from(elements, ({ packets = 0 }) => packets)
      : null,
  };
}
