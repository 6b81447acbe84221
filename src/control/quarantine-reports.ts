import type { Clock } from '../base/clock.js';
import { least } from '../base/extremes.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { NodeFault, QuarantinedFrontend } from '../dataplane/contract.js';
import type { FrontendKey, FrontendPlan } from '../plan/types.js';
import type { QuarantinedService } from '../record/progress.js';

interface QuarantineReportsParts {
  readonly family: Family;
  readonly plan: (key: FrontendKey) => FrontendPlan | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  /** The time has come to try one again. */
  readonly onDue: () => void;
}

/**
 * Tells the log and the Services' users of frontends that are quarantined: once for each reason, and the log once when it is over. What is the node's fault is
 * logged once, and not for each frontend. Has them tried again.
 */
export class QuarantineReports {
  private held: ReadonlyMap<FrontendKey, QuarantinedService> = new Map();
  /** Frontends that are not reported one by one. */
  private ofNode: ReadonlySet<FrontendKey> = new Set();
  private faults: readonly string[] = [];
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly parts: QuarantineReportsParts) {}

  get services(): readonly QuarantinedService[] {
    return [...this.held.values()];
  }

  /** These are quarantined now, some of them because of faults of the node. */
  update(quarantined: readonly QuarantinedFrontend[], nodeFaults: readonly NodeFault[] = []): void {
    const { family, log, plan } = this.parts;
    const before = this.held;
    this.blame(nodeFaults);
    const ofNode = new Set(quarantined.flatMap(({ frontend, ofNode }) => (ofNode === true ? [frontend] : [])));
    this.held = new Map(
      quarantined.map(({ frontend, reason, since, absent }) => [
        frontend,
        {
          frontend,
          servicePort: plan(frontend)?.servicePort ?? null,
          reason,
          since,
          ...(absent === true ? { absent } : {}),
        },
      ]),
    );
    for (const service of this.held.values())
      if (isOtherwise(before.get(service.frontend), service) && !ofNode.has(service.frontend)) this.report(service);
    for (const { frontend, servicePort } of before.values())
      if (!this.held.has(frontend) && !this.ofNode.has(frontend))
        log.info(0, 'a frontend is no longer quarantined', { family, frontend, servicePort });
    this.ofNode = ofNode;
    this.schedule(quarantined);
  }

  /** The node has these faults now. */
  blame(nodeFaults: readonly NodeFault[]): void {
    const { family, log } = this.parts;
    const before = this.faults;
    this.faults = nodeFaults.map(({ text }) => text);
    for (const { text, remedy } of nodeFaults)
      if (!before.includes(text)) log.error(null, 'this node is at fault', { family, fault: text, remedy });
    for (const fault of before)
      if (!this.faults.includes(fault)) log.info(0, 'this node is no longer at fault', { family, fault });
  }

  private report({ frontend, servicePort, reason, absent }: QuarantinedService): void {
    const { family, log, events } = this.parts;
    log.warn(
      absent === true
        ? 'the kernel refuses a frontend, which is quarantined: the kernel has nothing of it, and it is retried'
        : 'the kernel refuses a frontend, which is quarantined: its old rules stay, and it is retried',
      { family, frontend, servicePort, reason },
    );
    if (servicePort === null) return;
    // Not one event of the cluster: what a kernel refuses depends on its version, modules and memory, and on this node's other rules.
    events.record({
      type: 'Warning',
      reason: 'ProgrammingFailed',
      action: 'ProgramService',
      regarding: serviceSubject(servicePort),
      related: null,
      note: `${frontend} cannot be programmed and is retried: ${reason}`,
    });
  }

  private schedule(quarantined: readonly QuarantinedFrontend[]): void {
    const { clock, onDue } = this.parts;
    this.cancelTimer?.();
    this.cancelTimer = null;
    if (quarantined.length === 0) return;
    const next = least(quarantined.map(({ retryAt }) => retryAt));
    this.cancelTimer = clock.callAt(Math.max(next, clock.now()), () => {
      this.cancelTimer = null;
      onDue();
    });
  }
}

function isOtherwise(before: QuarantinedService | undefined, { reason, absent }: QuarantinedService): boolean {
  return before?.reason !== reason || before.absent !== absent;
}
