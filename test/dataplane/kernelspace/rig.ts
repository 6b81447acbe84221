import type { Family, IPAddress } from '../../../src/base/ip.js';
import type { FamilyDataplane } from '../../../src/dataplane/contract.js';
import { KernelspaceDriver, type KernelspaceOptions } from '../../../src/dataplane/kernelspace/driver.js';
import { Reconciler } from '../../../src/dataplane/reconciler.js';
import { Modifying } from '../../../src/dataplane/kernelspace/modifying.js';
import { printOperation } from '../../../src/dataplane/kernelspace/print.js';
import { hcnFeatures } from '../../../src/native/contract.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { FamilyRig } from '../../support/family-rig.js';
import { address, node } from '../../support/rows.js';

export const NODE_ROWS: readonly Row[] = [node('me', ['192.168.0.2', '2001:db8::1'])];

const DEFAULTS: Partial<PlanSettings> = {
  nodePortAddresses: [],
  traits: {
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    prefersLocal: false,
    retriesAttempts: 'none',
    servesLocalhost: false,
    listensOnLocalhost: false,
    balancesOnly: true,
    endpointLimits: { internal: 64, external: 64 },
  },
};

type Settings = Omit<KernelspaceOptions, 'hcn' | 'family' | 'now' | 'modifying' | 'onOperations'>;

/** One family of one process in kernelspace mode, on a node with HNS. */
export class Rig extends FamilyRig<HnsWorld, FamilyDataplane> {
  /** Milliseconds. */
  now = 0;
  /** Of processes to come. */
  settings: Settings = {
    network: { by: 'name', text: 'cbr0' } as const,
    sourceVip: null,
    sourceVipEndpoint: null,
    servesOverlay: true,
    enableDSR: false,
    features: hcnFeatures(this.kernel.hns.version),
    healthCheckEndpoint: null,
    healthzPort: 10_256,
    interfaceMac: (wanted: IPAddress) => (wanted === address('192.168.0.2') ? '00:15:5d:00:00:02' : null),
  };
  /** Times that HNS was found to pretend that it modifies. */
  refuted = 0;
  private sent: string[] = [];
  /** As it is asked for when HNS notifies of networks. */
  stirred = (): Promise<boolean> => Promise.resolve(false);
  dataplane = this.process();

  constructor(kernel: HnsWorld = new HnsWorld(), family: Family = 'IPv4', settings: Partial<PlanSettings> = {}) {
    super(kernel, family, DEFAULTS, settings);
  }

  /** Pods of this node are in HNS before they are planned. */
  override commit(rows: readonly Row[], gone: readonly RowRef[] = []): void {
    this.kernel.follow(
      rows.map((row) => ({ type: 'upsert' as const, row })),
      'me',
    );
    super.commit(rows, gone);
  }

  /** The plan has them, and HNS does not know of pods of this node among them. */
  commitEarly(rows: readonly Row[]): void {
    super.commit(rows);
  }

  /** Another process, with these settings. */
  restartWith(settings: Partial<Settings>): void {
    this.settings = { ...this.settings, ...settings };
    this.restart();
  }

  /** What was sent while something was done, an operation a line without its id. */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    this.sent = [];
    await work();
    return this.sent;
  }

  /** The same without ids and settings. */
  async reported(work: () => Promise<unknown>): Promise<readonly string[]> {
    const lines = await this.during(work);
    return lines.map((line) => line.replace(/^hns (\w+ \w+) .*$/, '$1'));
  }

  /** Removes everything of the mode's, as a process does that does nothing else. */
  remove(): Promise<void> {
    return this.driver().remove();
  }

  protected process(): FamilyDataplane {
    const driver = this.driver();
    const reconciler = new Reconciler(driver, () => this.now);
    this.stirred = () => driver.stirred(() => reconciler.quiet());
    return reconciler;
  }

  private driver(): KernelspaceDriver {
    const { family, settings } = this;
    return new KernelspaceDriver({
      ...settings,
      hcn: this.kernel.hns,
      family,
      now: () => this.now,
      modifying: new Modifying(settings.features.modifyLoadBalancer, () => this.refuted++),
      onOperations: (operations) => this.sent.push(...operations.map(printOperation)),
    });
  }

  protected mistrust(): void {
    return;
  }
}
