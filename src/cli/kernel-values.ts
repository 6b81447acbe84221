import { systemClock } from '../base/clock.js';
import { nodeSubject, type EventRecorder } from '../base/events.js';
import type { Log } from '../base/log.js';
import { KernelValues } from '../control/kernel-values.js';
import type { Host, KernelSettings } from '../host/host.js';
import type { HealthState } from '../record/health.js';
import type { NativeAddon } from '../native/contract.js';
import type { ProxyMetrics } from '../observe/metrics.js';

interface KeptValuesParts {
  readonly host: Host;
  /** Asked for only on platforms that have such values. */
  readonly addon: Pick<NativeAddon, 'sysctl'>;
  /** The values in the configuration in force. */
  readonly settings: () => KernelSettings;
  readonly log: Log;
  readonly metrics: Pick<ProxyMetrics, 'sysctlRepaired'>;
  readonly health: Pick<HealthState, 'sysctls'>;
  readonly events: EventRecorder;
  readonly nodeName: () => string;
}

/** The sysctls of the configuration, with a report to observers of the process. */
export function keptValues({
  host,
  addon,
  settings,
  log,
  metrics,
  health,
  events,
  nodeName,
}: KeptValuesParts): KernelValues {
  return new KernelValues({
    values: () => host.kernelValues(settings()),
    apply: host.applyKernelValues,
    watch: (...watched) => addon.sysctl.sysctlWatch(...watched),
    clock: systemClock,
    log,
    onRepaired: ({ path, value, found }) => {
      metrics.sysctlRepaired();
      const note = `${path} was set to ${found} by an external change and is ${value} again`;
      const about = { regarding: nodeSubject(nodeName()), related: null };
      events.record({ type: 'Warning', reason: 'SysctlRepaired', action: 'RepairSysctl', note, ...about });
    },
    onChecked: (problems) => {
      health.sysctls = problems;
    },
  });
}
