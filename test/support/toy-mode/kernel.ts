import { familyOf, type Family, type IPAddress } from '../../../src/base/ip.js';
import { parseFrontendKey } from '../../../src/plan/frontend-key.js';
import { printTable } from '../../../src/plan/text.js';
import type { FamilyTable, FrontendKey, FrontendPlan, NodePlan } from '../../../src/plan/types.js';
import type { KernelVerdict } from '../courses.js';
import { loadCompiler } from '../fake-kernel/compiler.js';
import { FakeKernel } from '../fake-kernel/fake-kernel.js';
import { KernelError } from '../fake-kernel/kernel-error.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import { sourceKind, tracePacket } from '../plan-tracer.js';
import type { SeededRandom } from '../random.js';
import type { ScenarioWorld } from '../scenario-world.js';
import { TOY_TRAITS } from './traits.js';

/** One family's table as the toy's kernel holds it: a copy of the plan's, and datagram frontends that are gone while flows of theirs may be left. */
export class ToyTable implements FamilyTable {
  readonly unsynced = false;
  readonly family: Family;
  readonly node: NodePlan;
  readonly clusterAddresses: ReadonlySet<IPAddress>;
  readonly hairpinAddresses: ReadonlySet<IPAddress>;
  readonly ownEndpoints: ReadonlySet<IPAddress> = new Set();
  private readonly byKey: ReadonlyMap<FrontendKey, FrontendPlan>;

  /** @param kept frontends that the plan does not name and that stay all the same. */
  constructor(
    plan: FamilyTable,
    kept: readonly FrontendPlan[] = [],
    readonly gone: ReadonlySet<FrontendKey> = new Set(),
  ) {
    this.family = plan.family;
    this.node = plan.node;
    this.clusterAddresses = new Set(plan.clusterAddresses);
    this.hairpinAddresses = new Set(plan.hairpinAddresses);
    this.byKey = new Map([...kept, ...plan.frontends()].map((frontend) => [frontend.key, frontend]));
  }

  frontend(key: FrontendKey): FrontendPlan | undefined {
    return this.byKey.get(key);
  }

  frontends(): Iterable<FrontendPlan> {
    return this.byKey.values();
  }

  healthChecks(): Iterable<never> {
    return [];
  }

  /** Equal for equal tables. */
  get text(): string {
    return [...printTable(this), ...[...this.gone].sort()].join('\n');
  }
}

/** A kernel that takes whole tables of the plan and asks no more of a mode. Conntrack is the fake kernel's. */
export class ToyKernel extends FakeKernel implements ScenarioWorld {
  readonly addon = this;
  transactions = 0;
  private readonly held = new Map<Family, ToyTable>();
  /** By Service port and client: where it went. */
  private readonly clients = new Map<string, string>();

  constructor() {
    super(loadCompiler());
  }

  async read(family: Family): Promise<ToyTable | null> {
    await Promise.resolve();
    if (this.faults.take('list') !== null) throw refusal('toy read');
    return this.held.get(family) ?? null;
  }

  /** Puts a table in the place of the one that is there; null: none. All of it happens, or nothing. */
  async replace(family: Family, table: ToyTable | null): Promise<void> {
    await Promise.resolve();
    const fault = this.faults.take('transact');
    if (fault?.type === 'refuse') throw refusal('toy replace');
    if (table === null) this.held.delete(family);
    else this.held.set(family, table);
    this.transactions++;
    this.forgetClients();
    if (fault?.type === 'lose-ack') throw refusal('toy replace');
  }

  /** `address:port`; null: nobody remembers the client. */
  remembered(servicePort: string, client: IPAddress): string | null {
    return this.clients.get(`${servicePort} ${client}`) ?? null;
  }

  verdict(packet: KernelPacket, localAddresses: readonly IPAddress[]): KernelVerdict {
    const { verdict, frontend } = this.look(packet, localAddresses);
    if (verdict.type !== 'forward' || frontend?.affinitySeconds === null) return verdict;
    const endpoint = this.remembered(frontend?.servicePort ?? '', packet.source);
    return endpoint !== null && verdict.endpoints.includes(endpoint) ? { ...verdict, endpoints: [endpoint] } : verdict;
  }

  override connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    const { verdict, frontend } = this.look(packet, localAddresses);
    if (verdict.type !== 'forward' || !verdict.endpoints.includes(endpoint))
      throw new Error(`no way leads to ${endpoint}`);
    this.clients.set(`${frontend?.servicePort ?? ''} ${packet.source}`, endpoint);
  }

  failAtRandom(random: SeededRandom): void {
    this.faults.atRandom(random);
  }

  loseAnswers(count: number): void {
    for (let index = 0; index < count; index++) this.faults.next({ type: 'lose-ack' });
  }

  failNoMore(): void {
    this.faults.clear();
  }

  leftovers(): readonly string[] {
    return [];
  }

  contents(): readonly string[] {
    return [...this.held.values()].flatMap(printTable);
  }

  /** What the table says; the rules of this kernel are the plan. */
  private look(
    packet: KernelPacket,
    localAddresses: readonly IPAddress[],
  ): Pick<ReturnType<typeof tracePacket>, 'verdict' | 'frontend'> {
    const table = this.held.get(familyOf(packet.destination));
    if (table === undefined) return { verdict: { type: 'none' }, frontend: null };
    const from = sourceKind(table.node, packet.source, packet.inputInterface, localAddresses);
    return tracePacket(table, { ...packet, from }, localAddresses, TOY_TRAITS);
  }

  /** Clients of endpoints that their Service port has no more. */
  private forgetClients(): void {
    const known = new Set<string>();
    for (const table of this.held.values())
      for (const { servicePort, endpoints, localEndpoints } of table.frontends())
        for (const endpoint of [...endpoints.toStrings(), ...(localEndpoints?.toStrings() ?? [])])
          known.add(`${servicePort} ${endpoint}`);
    for (const [client, endpoint] of this.clients)
      if (!known.has(`${client.slice(0, client.lastIndexOf(' '))} ${endpoint}`)) this.clients.delete(client);
  }
}

/** Of UDP and SCTP, whose flows do not end by themselves. */
export function isDatagram(key: FrontendKey): boolean {
  return parseFrontendKey(key).protocol !== 'TCP';
}

function refusal(operation: string): KernelError {
  return new KernelError('ENOMEM', operation, { object: null, index: null, element: null });
}
