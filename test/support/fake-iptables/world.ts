import { FAMILIES, type IPAddress } from '../../../src/base/ip.js';
import { IPTABLES } from '../../../src/dataplane/iptables/mode.js';
import { CHAIN, isOwnChain } from '../../../src/dataplane/iptables/names.js';
import type { IptablesTable } from '../../../src/native/contract.js';
import type { KernelVerdict } from '../courses.js';
import { loadCompiler } from '../fake-kernel/compiler.js';
import { FakeKernel } from '../fake-kernel/fake-kernel.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import type { SeededRandom } from '../random.js';
import type { ScenarioMode, ScenarioWorld } from '../scenario-world.js';
import { FakeIptables } from './fake-iptables.js';
import { jumpTarget } from './rule-text.js';

const compiler = loadCompiler();

export const IPTABLES_STORIES: ScenarioMode = {
  definition: IPTABLES,
  forgetsGoneFlows: true,
  tellsRemembered: true,
  world: () => new IptablesWorld(),
};

const TABLES: readonly IptablesTable[] = ['filter', 'nat', 'mangle'];

/** A kernel whose tables are those of the programs, of the flavour that nf_tables has. */
class IptablesKernel extends FakeKernel {
  constructor(private readonly programs: FakeIptables) {
    super(compiler, {}, programs);
  }

  override nftGeneration(): Promise<number> {
    return Promise.resolve(this.programs.commits);
  }
}

class IptablesWorld implements ScenarioWorld {
  private readonly programs = new FakeIptables();
  readonly addon = new IptablesKernel(this.programs);
  readonly flows = this.addon.flows;

  constructor() {
    this.programs.accounts = new Map();
  }

  get transactions(): number {
    return this.programs.committed.length;
  }

  forgetCalls(): void {
    this.addon.forgetCalls();
    this.programs.forgetCalls();
  }

  verdict(packet: KernelPacket, localAddresses: readonly IPAddress[], weighted = false): KernelVerdict {
    return this.programs.trace(packet, localAddresses, weighted);
  }

  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    this.programs.connect(packet, localAddresses, endpoint);
  }

  /** A full sync lists the rules whatever happened. */
  touch(): void {
    return;
  }

  harm(random: SeededRandom): void {
    this.programs.harm(random, { nat: 'KUBE-SVC-AAAAAAAAAAAAAAAA', filter: 'KUBE-SERVICES-9' });
  }

  failAtRandom(random: SeededRandom): void {
    this.programs.failAtRandom(random);
    this.addon.faults.atRandom(random);
  }

  loseAnswers(count: number): void {
    for (let index = 0; index < count; index++) this.programs.faults.push('lose-ack');
  }

  failNoMore(): void {
    this.programs.failAtRandom(null);
    this.addon.faults.clear();
  }

  /** Chains that nothing leads to; the canaries, and what marks packets, are there in any case. */
  leftovers(): readonly string[] {
    return this.tables().flatMap(({ family, table, chains }) => {
      const used = new Set<string | null>([
        CHAIN.canary,
        CHAIN.markMasquerade,
        ...[...chains.values()].flat().map(jumpTarget),
      ]);
      const unused = [...chains.keys()].filter((name) => isOwnChain(table, name) && !used.has(name));
      return unused.map((name) => `${family} ${table} ${name}`);
    });
  }

  /** Every chain with its rules. */
  contents(): readonly string[] {
    return this.tables().flatMap(({ family, table, chains }) =>
      [...chains].map(([name, rules]) => [`${family} ${table} ${name}`, ...rules].join('\n')),
    );
  }

  private tables() {
    return FAMILIES.flatMap((family) =>
      TABLES.map((table) => ({ family, table, chains: this.programs.every(table, family) })),
    );
  }
}
