import { BUILT_IN_TIMEOUTS, type ConntrackTimeouts } from '../../../src/base/conntrack-timeouts.js';
import type { Family } from '../../../src/base/ip.js';
import { untilDifferent } from '../../support/until-different.js';
import { IptablesDriver } from '../../../src/dataplane/iptables/driver.js';
import type { FamilyDataplane } from '../../../src/dataplane/contract.js';
import type { NodeSettings } from '../../../src/dataplane/iptables/fixed-chains.js';
import { PacketCounters } from '../../../src/dataplane/iptables/packet-counters.js';
import { TimeoutPolicies } from '../../../src/dataplane/iptables/timeout-policies.js';
import { tracesOf } from '../../../src/dataplane/iptables/traces.js';
import { Reconciler } from '../../../src/dataplane/reconciler.js';
import type { IptablesFlavor, IptablesOperation } from '../../../src/native/contract.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { Row } from '../../../src/state/rows.js';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { FamilyRig, committedDuring } from '../../support/family-rig.js';
import { node } from '../../support/rows.js';

export const NODE_ROWS: readonly Row[] = [node('me', ['192.168.0.2', '2001:db8::1'], { zone: 'zone-a' })];

/** Settings as an unconfigured process in this mode has them. */
const DEFAULTS: Partial<PlanSettings> = {
  nodePortAddresses: [],
  traits: {
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    prefersLocal: false,
    retriesAttempts: 'without-affinity',
    servesLocalhost: true,
    listensOnLocalhost: false,
    balancesOnly: false,
    shares: 'weights',
  },
};

/** One family of one process in iptables mode, on fake iptables. */
export class Rig extends FamilyRig<FakeIptables, FamilyDataplane> {
  settings: NodeSettings = { dropInvalid: true };
  timeouts: ConntrackTimeouts = BUILT_IN_TIMEOUTS;
  /** A table of others that decides behind table raw. */
  decider: string | null = null;
  /** What is answered for the generation of nf_tables. */
  generation: () => Promise<number> = () => Promise.resolve(this.kernel.commits);
  /** Milliseconds since the process began; every full sync comes long after what was before. */
  private now = 0;
  counters = this.ownCounters();
  dataplane = this.process();

  constructor(
    kernel: FakeIptables = new FakeIptables(),
    family: Family = 'IPv4',
    settings: Partial<PlanSettings> = {},
    private readonly flavor: IptablesFlavor = 'nft',
  ) {
    super(kernel, family, DEFAULTS, settings);
    this.restart();
  }

  /** Lets time go by. */
  wait(ms: number): void {
    this.now += ms;
  }

  /** `chain nat KUBE-SERVICES`, `delete-chain …`, `insert nat PREROUTING …`, of what was sent while something was done. */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    const committed = await committedDuring(this.kernel, work);
    return committed.flatMap(({ operations }) => operations.map(printOperation));
  }

  protected process(): FamilyDataplane {
    this.counters = this.ownCounters();
    const now = (): number => this.now++;
    const nftables = {
      nftGeneration: () => this.generation(),
      nftGenerationWatch: (generation: number, _: number, onChange: () => void) =>
        untilDifferent(1, async () => (await this.generation()) === generation, onChange),
    };
    const driver = new IptablesDriver({
      addon: this.kernel,
      family: this.family,
      flavor: this.flavor,
      settings: () => Promise.resolve(this.settings),
      counters: this.counters,
      policies: new TimeoutPolicies({
        addon: this.kernel,
        family: this.family,
        flavor: this.flavor,
        sysctls: () => this.timeouts,
      }),
      decidesLater: () => Promise.resolve(this.decider),
      traces: tracesOf({ iptables: this.kernel, nftables }, this.flavor)(this.family),
      now,
    });
    return new Reconciler(driver, now);
  }

  protected mistrust(): void {
    this.wait(3_600_000);
  }

  private ownCounters(): PacketCounters {
    return new PacketCounters({ accounting: this.kernel }, 'nft');
  }
}

function printOperation(operation: IptablesOperation): string {
  const verb = operation.type === 'rule' ? operation.verb : operation.type;
  return `${verb} ${operation.table} ${operation.chain}`;
}
