import { addChain, addRule, back, deleteTable, flushChain, flushSet } from '../../../src/dataplane/nftables/json.js';
import type { PackedKey } from '../../../src/dataplane/nftables/keys.js';
import { isWrittenByPackets, TABLE } from '../../../src/dataplane/nftables/names.js';
import type { NftCommand, NftFamily, NftOperation } from '../../../src/native/contract.js';
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

  forgetCalls(): void {
    this.addon.forgetCalls();
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

  harm(random: SeededRandom): void {
    const family = random.pick(FAMILIES);
    const held = this.addon.table(family);
    if (held !== null) this.addon.foreign({ family, table: TABLE, operations: [harmTo(random, family, held)] });
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

/** What somebody does with nft, or with a proxy that is not ours. */
function harmTo(random: SeededRandom, family: NftFamily, { chains, sets }: FakeTable): NftOperation {
  const where = { family, table: TABLE };
  const commands = (...each: readonly NftCommand[]): NftOperation => ({ type: 'commands', commands: each });
  const chain = random.pick([...chains.keys()]);
  const full = [...sets.values()].filter(({ elements }) => elements.size > 0);
  const unexpected = { name: 'service-ABCDEFGH-default/gone', hook: null, rules: [] };
  const draw = random.below(full.length === 0 ? 4 : 6);
  if (draw === 0) return commands(deleteTable(where));
  if (draw === 1) return commands(...[...chains.keys()].map((name) => flushChain(where, name)));
  if (draw === 2) return commands(addRule(where, chain, [back]));
  if (draw === 3) return commands(addChain(where, unexpected), addRule(where, unexpected.name, [back]));
  const set = random.pick(full);
  if (draw === 4) return commands(flushSet(where, set.name));
  const { key, keyEnd } = random.pick([...set.elements.values()]);
  return {
    type: 'elements',
    verb: 'delete',
    set: set.name,
    count: 1,
    keyLength: set.keyLength,
    keys: bytes(key),
    keyEnds: keyEnd === null ? null : bytes(keyEnd),
    dataLength: 0,
    data: null,
    gotoChains: null,
    comments: null,
  };
}

function bytes(packed: PackedKey): Uint8Array {
  return new Uint8Array(Buffer.from(packed, 'latin1'));
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
  // Maps of endpoints are used by class chains alone, and some sets by rules for loopback alone: there may be none.
  const optional = /endpoints(-\d+)?$|^(?:recent-attempts|datagram-nodeports|rejected-on-loopback)$/;
  // So are the chains that all Services with affinity share, and the one for attempts that nobody answers.
  const shared = /^(?:connect-retry|find-(?:local-)?clients(?:-of-nodeports)?|no-room-for-client)$/;
  return [
    ...[...table.chains.values()]
      .filter(({ name, hook }) => hook === null && !chains.has(name) && !shared.test(name))
      .map(({ name }) => `chain ${name}`),
    ...[...table.sets.keys()].filter((name) => !sets.has(name) && !optional.test(name)).map((name) => `set ${name}`),
  ];
}
