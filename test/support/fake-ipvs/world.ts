import { FAMILIES, type IPAddress } from '../../../src/base/ip.js';
import { isOwnChain } from '../../../src/dataplane/ipvs/footprint.js';
import { IPVS } from '../../../src/dataplane/ipvs/mode.js';
import { CHAIN, LINK } from '../../../src/dataplane/ipvs/names.js';
import { printElements, printServiceEndpoint, printState } from '../../../src/dataplane/ipvs/print.js';
import type { IptablesTable } from '../../../src/native/contract.js';
import { printTarget, verdictOf, type KernelVerdict } from '../courses.js';
import { FakeIptables } from '../fake-iptables/fake-iptables.js';
import { traveller } from '../fake-iptables/packet.js';
import { jumpTarget } from '../fake-iptables/rule-text.js';
import { loadCompiler } from '../fake-kernel/compiler.js';
import { FakeKernel } from '../fake-kernel/fake-kernel.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import type { SeededRandom } from '../random.js';
import type { ScenarioMode, ScenarioWorld } from '../scenario-world.js';
import { IpvsFaults } from './faults.js';
import { FakeLinks } from './links.js';
import { FakeSets } from './sets.js';
import { courses, serviceOf, type TracedKernel } from './trace.js';
import { FakeVirtualServers } from './virtual-servers.js';

const compiler = loadCompiler();

export const IPVS_STORIES: ScenarioMode = {
  definition: IPVS,
  forgetsGoneFlows: true,
  tellsRemembered: true,
  world: (localAddresses) => new IpvsWorld(localAddresses),
};

const TABLES: readonly IptablesTable[] = ['filter', 'nat', 'mangle'];

/** A kernel with ip_vs, ipset, links and the iptables programs. */
class IpvsKernel extends FakeKernel {
  readonly mishaps = new IpvsFaults();
  override readonly ipvs = new FakeVirtualServers(this.mishaps);
  override readonly ipset: FakeSets;
  override readonly route: FakeLinks;

  constructor(
    readonly programs: FakeIptables,
    own: readonly IPAddress[],
  ) {
    super(compiler, {}, programs);
    this.ipset = new FakeSets(this.mishaps, () => this.usedSets());
    this.route = new FakeLinks(this.mishaps, own);
    programs.hasSet = (name) => this.ipset.sets.has(name);
  }

  /** All tables are those of the programs, of the flavour that nf_tables has. */
  override nftGeneration(): Promise<number> {
    return Promise.resolve(this.programs.changes);
  }

  private usedSets(): ReadonlySet<string> {
    const chains = FAMILIES.flatMap((family) => TABLES.map((table) => this.programs.every(table, family)));
    const rules = chains.flatMap((table) => [...table.values()].flat());
    return new Set(rules.flatMap((rule) => [...rule.matchAll(/-set (\S+) /g)].map(([, name = '']) => name)));
  }
}

export class IpvsWorld implements ScenarioWorld {
  readonly programs = new FakeIptables();
  readonly addon: IpvsKernel;
  readonly flows;

  constructor(own: readonly IPAddress[]) {
    this.addon = new IpvsKernel(this.programs, own);
    this.flows = this.addon.flows;
  }

  get transactions(): number {
    const { ipvs, ipset, route } = this.addon;
    return [this.programs, ipvs, ipset, route].reduce((sum, { committed }) => sum + committed.length, 0);
  }

  forgetCalls(): void {
    const { ipvs, ipset, route } = this.addon;
    this.addon.forgetCalls();
    this.programs.forgetCalls();
    for (const { committed } of [ipvs, ipset, route]) committed.length = 0;
  }

  verdict(packet: KernelPacket): KernelVerdict {
    return verdictOf(courses(this.traced(packet), packet));
  }

  connect(packet: KernelPacket, _: readonly IPAddress[], endpoint: string): void {
    const kernel = this.traced(packet);
    const way = courses(kernel, packet).find(({ packet: end }) => printTarget(end) === endpoint);
    if (way === undefined) throw new Error(`no way leads to ${endpoint}`);
    const service = serviceOf(kernel.servers, traveller(packet, kernel.addresses));
    if (service !== null && service.state.timeoutSeconds > 0)
      service.clients.set(way.packet.source, way.packet.destination + way.packet.port);
  }

  /** A full sync looks at everything whatever happened. */
  touch(): void {
    return;
  }

  harm(random: SeededRandom): void {
    const { ipvs, ipset, route } = this.addon;
    const services = [...ipvs.services];
    const sets = [...ipset.sets.values()].filter(({ elements }) => elements.size > 0);
    const deed = random.below(6);
    if (deed === 0) this.programs.harm(random, { nat: CHAIN.loadBalancer, filter: CHAIN.sourceRanges });
    if (deed === 1) ipvs.services.clear();
    if (deed === 2 && services.length > 0) ipvs.services.delete(random.pick(services)[0]);
    if (deed === 3 && services.length > 0) random.pick(services)[1].destinations.clear();
    if (deed === 4 && sets.length > 0) random.pick(sets).elements.clear();
    if (deed === 5) {
      if (random.chance(0.5)) route.links.delete(LINK);
      else route.links.get(LINK)?.clear();
    }
  }

  failAtRandom(random: SeededRandom): void {
    this.programs.failAtRandom(random);
    this.addon.mishaps.atRandom(random);
    this.addon.faults.atRandom(random);
  }

  loseAnswers(count: number): void {
    for (let index = 0; index < count; index++) this.addon.mishaps.planned.push('lose-ack');
  }

  failNoMore(): void {
    this.programs.failAtRandom(null);
    this.addon.mishaps.atRandom(null);
    this.addon.faults.clear();
  }

  /** Chains that nothing leads to, but what marks packets, and destinations that wait although nobody has connections. */
  leftovers(): readonly string[] {
    const used = new Set<string | null>([CHAIN.markMasquerade]);
    const chains = this.chains();
    for (const { rules } of chains) for (const rule of rules) used.add(jumpTarget(rule));
    const unused = chains.filter(({ table, name }) => isOwnChain(table, name) && !used.has(name));
    const waiting = [...this.addon.ipvs.services].filter(([, { destinations }]) =>
      [...destinations.values()].some(({ weight }) => weight === 0),
    );
    return [...unused.map(({ text }) => text), ...waiting.map(([key]) => `virtual service ${key} waits`)];
  }

  contents(): readonly string[] {
    const { ipvs, ipset, route } = this.addon;
    return [
      ...this.chains().map(({ text, rules }) => [text, ...rules].join('\n')),
      ...[...ipvs.services.values()].map(({ service, state, destinations }) =>
        [
          `${service.protocol} ${printServiceEndpoint(service)}${printState(state)}`,
          ...[...destinations]
            .map(([key, { weight }]) => `${Buffer.from(key, 'latin1').toString('hex')} ${weight}`)
            .sort(),
        ].join('\n'),
      ),
      ...[...ipset.sets].map(([name, { creation, elements }]) =>
        [
          name,
          ...[...elements]
            .map(([key, comment]) => `${printElements(creation, Buffer.from(key, 'latin1')).join()} ${comment}`)
            .sort(),
        ].join('\n'),
      ),
      [LINK, ...[...(route.links.get(LINK) ?? [])].sort()].join('\n'),
    ];
  }

  private chains() {
    return FAMILIES.flatMap((family) =>
      TABLES.flatMap((table) =>
        [...this.programs.every(table, family)].map(([name, rules]) => ({
          table,
          name,
          rules,
          text: `${family} ${table} ${name}`,
        })),
      ),
    );
  }

  private traced(packet: KernelPacket): TracedKernel {
    const { ipvs: servers, ipset: sets, route } = this.addon;
    const addresses = [...route.links.values()].flatMap((each) => [...each]);
    return { tables: this.programs.traced(packet), servers, sets, addresses };
  }
}
