import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { NodeRow } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import { checkNode, type NodeSettings } from './node-checks.js';

interface OwnNodeOptions {
  readonly families: readonly Family[];
  readonly log: Log;
  /** Called when configuration, machine and Node cannot go together, before anything was programmed. */
  readonly onFatal: (error: Error) => void;
}

/**
 * This node as planning is to see it. A Node that is deleted and made anew has neither addresses nor pod CIDRs for a while and is still the same machine:
 * what was known of it counts until something newer is.
 */
export class OwnNode {
  private known: NodeRow | undefined;
  private checked: { readonly settings: NodeSettings; readonly node: NodeRow | undefined } | null = null;
  private admitted = false;
  /** Something may have been programmed. */
  private started = false;
  private waiting: string | null = null;
  private readonly reported = new Set<string>();

  constructor(private readonly options: OwnNodeOptions) {}

  /**
   * Takes the Node as it is now. False while nothing may be programmed: without the pod CIDRs that are to tell pods from others (detectLocalMode
   * NodeCIDR) every rule about them would be wrong.
   */
  update(settings: NodeSettings, now: NodeRow | undefined): boolean {
    if (this.checked?.settings === settings && this.checked.node === now) return this.admitted;
    // By another name it is another Node.
    if (this.checked !== null && this.checked.settings.nodeName !== settings.nodeName) this.known = undefined;
    this.checked = { settings, node: now };
    this.known = this.remember(now);
    const { warnings, errors } = checkNode(settings, this.options.families, this.known);
    for (const warning of warnings) this.warn(warning);
    const [error] = errors;
    if (error !== undefined && !this.started) {
      this.options.onFatal(new Error(`the configuration does not fit this node: ${error}`));
      return false;
    }
    for (const each of errors) this.warn(each);
    if (settings.localDetection.type === 'NodeCIDR') this.admitPodCIDRs(settings.nodeName, now);
    else this.admit();
    this.started ||= this.admitted;
    return this.admitted;
  }

  /** What is to be known before anything is programmed; null: nothing. */
  get waitsFor(): string | null {
    return this.waiting;
  }

  /** The state with this node as it is known. */
  view(snapshot: Snapshot, nodeName: string): Snapshot {
    const { known } = this;
    return {
      service: (key) => snapshot.service(key),
      services: () => snapshot.services(),
      serviceCount: snapshot.serviceCount,
      slicesOf: (service) => snapshot.slicesOf(service),
      slices: () => snapshot.slices(),
      node: (name) => (name === nodeName ? known : snapshot.node(name)),
      serviceCIDRs: () => snapshot.serviceCIDRs(),
      ready: snapshot.ready,
      unsynced: snapshot.unsynced,
    };
  }

  private remember(now: NodeRow | undefined): NodeRow | undefined {
    const { known } = this;
    if (known === undefined) return now;
    const node = now ?? { ...known, zone: null };
    const addresses = node.addresses.length > 0 ? node.addresses : known.addresses;
    const podCIDRs = node.podCIDRs.length > 0 ? node.podCIDRs : known.podCIDRs;
    return { ...node, addresses, podCIDRs };
  }

  private admitPodCIDRs(nodeName: string, now: NodeRow | undefined): void {
    const { log } = this.options;
    if ((this.known?.podCIDRs.length ?? 0) > 0) {
      if (this.waiting !== null) log.info(0, 'pod CIDRs are known', { podCIDRs: this.known?.podCIDRs.join() });
      if (now?.podCIDRs.length === 0) this.warn('the Node has no podCIDRs any more, the last known stay');
      this.admit();
      return;
    }
    const what = now === undefined ? `there is no Node ${nodeName}` : `Node ${nodeName} has no podCIDRs`;
    this.waiting = `${what}, and detectLocalMode is NodeCIDR: nothing is programmed before they are known`;
    this.admitted = false;
    this.warn(this.waiting);
  }

  private admit(): void {
    this.waiting = null;
    this.admitted = true;
  }

  /** Says it once. */
  private warn(text: string): void {
    if (this.reported.has(text)) return;
    this.reported.add(text);
    this.options.log.warn(text);
  }
}
