import type { Family, IPAddress } from '../../../src/base/ip.js';
import { IpvsDriver, type Look } from '../../../src/dataplane/ipvs/driver.js';
import { printMessage } from '../../../src/dataplane/ipvs/print.js';
import { Reconciler } from '../../../src/dataplane/reconciler.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { Row } from '../../../src/state/rows.js';
import { IpvsWorld } from '../../support/fake-ipvs/world.js';
import { FamilyRig } from '../../support/family-rig.js';
import { address, node, prefix } from '../../support/rows.js';

export const NODE_ROWS: readonly Row[] = [node('me', ['192.168.0.2', '2001:db8::1'], { zone: 'zone-a' })];

export const OWN: readonly IPAddress[] = ['192.168.0.2', '192.168.1.2', '2001:db8::1'].map(address);

const DEFAULTS: Partial<PlanSettings> = {
  nodePortAddresses: [],
  traits: {
    guardsClusterAddresses: true,
    guardsServiceAddresses: true,
    prefersLocal: true,
    retriesAttempts: 'none',
    servesLocalhost: false,
    listensOnLocalhost: false,
    balancesOnly: false,
    shares: 'schedulers',
  },
};

class IpvsProcess extends Reconciler<Look> {
  constructor(
    override readonly driver: IpvsDriver,
    now: () => number,
  ) {
    super(driver, now);
  }

  addressesDiffer(): Promise<boolean> {
    return this.driver.addressesDiffer(() => this.quiet());
  }
}

/** One family of one process in ipvs mode, on a kernel with ip_vs. */
export class Rig extends FamilyRig<IpvsWorld, IpvsProcess> {
  /** Milliseconds. */
  now = 0;
  scheduler = 'rr';
  lacking: readonly string[] = [];
  excluded = ['203.0.113.0/24'];
  countsRefused = false;
  /** What was sent beside rules, and of rules the chains. */
  private sent: string[] = [];
  dataplane = this.process();

  constructor(kernel: IpvsWorld = new IpvsWorld(OWN), family: Family = 'IPv4', settings: Partial<PlanSettings> = {}) {
    super(kernel, family, DEFAULTS, settings);
  }

  /** Lines that were sent while something was done, in their order. */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    this.sent = [];
    await work();
    return this.sent;
  }

  protected process(): IpvsProcess {
    const { family, scheduler, lacking } = this;
    const driver = new IpvsDriver({
      addon: this.kernel.addon,
      family,
      scheduler,
      lacking,
      flavor: 'nft',
      excluded: this.excluded.map(prefix),
      timeouts: null,
      countsRefused: this.countsRefused,
      now: () => this.now,
      onRules: ({ operations }) => {
        this.sent.push(...operations.map(({ type, table, chain }) => `${type} ${table} ${chain}`));
      },
      onMessage: (message) => {
        for (const line of printMessage(message)) this.sent.push(line);
      },
    });
    return new IpvsProcess(driver, () => this.now);
  }

  protected mistrust(): void {
    return;
  }
}
