import { isWrittenByPackets } from '../../../src/dataplane/nftables/names.js';
import type { IPAddress } from '../../../src/base/ip.js';
import { NFTABLES } from '../../../src/dataplane/nftables/mode.js';
import type { KernelVerdict } from '../courses.js';
import type { SeededRandom } from '../random.js';
import type { ScenarioMode, ScenarioWorld } from '../scenario-world.js';
import { loadCompiler } from './compiler.js';
import { FakeKernel } from './fake-kernel.js';
import type { KernelPacket } from './packet.js';
import { references, type FakeTable } from './table.js';

const compiler = loadCompiler();

export const NFTABLES_STORIES: ScenarioMode = {
  definition: NFTABLES,
  forgetsGoneFlows: false,
  tellsRemembered: true,
  world: () => new NftablesWorld(),
};

const FAMILIES = ['ip', 'ip6'] as const;

class NftablesWorld implements ScenarioWorld {
  readonly addon = new FakeKernel(compiler);
  readonly flows = this.addon.flows;

  get transactions(): number {
    return this.addon.committed.length;
  }

  verdict(packet: KernelPacket, localAddresses: readonly IPAddress[]): KernelVerdict {
    return this.addon.trace(packet, localAddresses);
  }

  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    this.addon.connect(packet, localAddresses, endpoint);
  }

  touch(): void {
    this.addon.touch();
  }

  failAtRandom(random: SeededRandom): void {
    this.addon.faults.atRandom(random);
  }

  loseAnswers(count: number): void {
    for (let index = 0; index < count; index++) this.addon.faults.next({ type: 'lose-ack' });
  }

  failNoMore(): void {
    this.addon.faults.clear();
  }

  /** No chain that nothing leads to, no set that no rule uses. */
  leftovers(): readonly string[] {
    return FAMILIES.flatMap((family) => {
      const table = this.addon.table(family);
      return table === null ? [] : unused(table).map((name) => `${family} ${name}`);
    });
  }

  /** How many elements every set has. Which ones, the dump says. */
  contents(): readonly string[] {
    return FAMILIES.flatMap((family) =>
      [...(this.addon.table(family)?.sets.values() ?? [])]
        .filter(({ name }) => !isWrittenByPackets(name))
        .map(({ name, elements }) => `${family} ${name} ${elements.size}`)
        .sort(),
    );
  }
}

function unused(table: FakeTable): readonly string[] {
  const chains = new Set<string>();
  const sets = new Set<string>(['stale-flows', 'stale-nodeport-flows']);
  for (const { rules } of table.chains.values()) {
    for (const { statements } of rules) {
      const referred = references(statements);
      for (const name of referred.chains) chains.add(name);
      for (const name of referred.sets) sets.add(name);
    }
  }
  for (const { elements } of table.sets.values())
    for (const { chain } of elements.values()) if (chain !== null) chains.add(chain);
  // Maps of endpoints are used by class chains alone, and there may be none.
  const optional = /endpoints(-\d+)?$/;
  // So are the chains that all Services with affinity share.
  const shared = /^(?:find-(?:local-)?clients(?:-of-nodeports)?|no-room-for-client)$/;
  return [
    ...[...table.chains.values()]
      .filter(({ name, hook }) => hook === null && !chains.has(name) && !shared.test(name))
      .map(({ name }) => `chain ${name}`),
    ...[...table.sets.keys()].filter((name) => !sets.has(name) && !optional.test(name)).map((name) => `set ${name}`),
  ];
}
