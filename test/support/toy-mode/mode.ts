import type { Family } from '../../../src/base/ip.js';
import type { AffinityQuestion, FamilyDataplane, Inspection, SyncReport } from '../../../src/dataplane/contract.js';
import type { Footprint } from '../../../src/dataplane/footprint.js';
import { ModeError, type ModeDefinition } from '../../../src/dataplane/mode.js';
import { printScope, printTable } from '../../../src/plan/text.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../../src/plan/types.js';
import type { ScenarioMode } from '../scenario-world.js';
import { isDatagram, ToyKernel, ToyTable } from './kernel.js';
import { TOY_TRAITS } from './traits.js';

/*
 * All that a mode has to bring, in the least that tells every story right. Its kernel (kernel.ts) takes the plan's own table, so what is left here is
 * what each mode owes the rest of the program:
 *
 * - Nothing is taken for done before the kernel said so: after a failure the kernel is read, and the difference is sent.
 * - A sync that finds nothing to do sends nothing. A full one compares everything with what the kernel holds.
 * - While the table has gaps, what it does not name stays.
 * - Datagram frontends that are gone are told until their flows are gone too, across restarts.
 * - What the kernel holds can be printed in the plan's words, as a whole and around one packet.
 *
 * Real modes send less than a table per change: they follow `change`, and render, order and read back in their kernel's terms.
 */

const FOOTPRINT: Footprint = { nftTables: [], chains: null, ipvs: null };

export const TOY: ModeDefinition = {
  name: 'toy',
  platforms: [process.platform],
  traits: () => TOY_TRAITS,
  footprint: FOOTPRINT,
  metrics: {
    tellsFullSyncs: true,
    syncFailures: { name: 'sync_proxy_rules_toy_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: null,
    rules: null,
    packets: [],
  },
  sysctls: () => [],
  deprecation: null,
  async open({ addon }, families) {
    await Promise.resolve();
    if (!(addon instanceof ToyKernel)) throw new ModeError('this kernel is no toy');
    return {
      families,
      dataplane: (family) => new ToyFamily(addon, family),
      own: { footprint: FOOTPRINT, flavor: null },
      watch: null,
      packetCounts: () => Promise.resolve(null),
    };
  },
  tryKernel: () => Promise.resolve([]),
  render: (_, tables) => Promise.resolve(tables.flatMap(printTable).join('\n')),
};

export const TOY_STORIES: ScenarioMode = {
  definition: TOY,
  forgetsGoneFlows: false,
  tellsRemembered: true,
  world: () => new ToyKernel(),
};

class ToyFamily implements FamilyDataplane {
  /** Null while nobody knows: at the start, and after any failure. */
  private acknowledged: ToyTable | null = null;

  constructor(
    private readonly kernel: ToyKernel,
    readonly family: Family,
  ) {}

  async apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const before = this.acknowledged;
    this.acknowledged = null;
    const full = options.full || before === null;
    const held = full ? await this.kernel.read(this.family) : before;
    const wanted = next(table, held);
    const differs = held?.text !== wanted.text;
    if (differs) await this.kernel.replace(this.family, wanted);
    this.acknowledged = wanted;
    return {
      ...{
        family: this.family,
        full,
        transactions: differs ? 1 : 0,
        elementOperations: 0,
        ruleOperations: 0,
        bytes: 0,
      },
      repairs: differs && held?.text !== before?.text && before !== null ? ['the table was another'] : [],
      ...{ problems: [], rules: null, setAside: [] },
      flows: full || change.node ? 'all' : new Set([...change.frontends].filter(isDatagram)),
    };
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.acknowledged?.gone ?? new Set();
  }

  async clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    const held = this.acknowledged;
    const gone = new Set([...(held?.gone ?? [])].filter((key) => !keys.has(key)));
    if (held === null || gone.size === held.gone.size) return;
    this.acknowledged = null;
    const cleared = new ToyTable(held, [], gone);
    await this.kernel.replace(this.family, cleared);
    this.acknowledged = cleared;
  }

  async cleanup(): Promise<void> {
    this.acknowledged = null;
    await this.kernel.replace(this.family, null);
  }

  async dump(): Promise<readonly string[]> {
    const held = await this.kernel.read(this.family);
    return held === null ? [] : printTable(held);
  }

  async inspect(_: FamilyTable, scope: PacketScope, affinity: AffinityQuestion | null): Promise<Inspection> {
    const held = await this.kernel.read(this.family);
    const { source = null, servicePort = '', endpoints = [] } = affinity ?? {};
    const remembered = source === null ? null : this.kernel.remembered(servicePort, source);
    return {
      lines: held === null ? [] : printScope(held, scope),
      remembered: remembered !== null && endpoints.includes(remembered) ? remembered : null,
    };
  }
}

/** The table that the kernel is to hold after the one that it holds. */
function next(table: FamilyTable, held: ToyTable | null): ToyTable {
  const unnamed = [...(held?.frontends() ?? [])].filter(({ key }) => table.frontend(key) === undefined);
  if (table.gaps) return new ToyTable(table, unnamed, held?.gone);
  const gone = [...(held?.gone ?? []), ...unnamed.map(({ key }) => key).filter(isDatagram)];
  return new ToyTable(table, [], new Set(gone.filter((key) => table.frontend(key) === undefined)));
}
