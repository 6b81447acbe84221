import type { ObjectKey } from '../../state/rows.js';
import type { CycleObserver } from '../cycle-observer.js';
import type { MetricFamily } from '../exposition.js';
import type { PortTraffic, ServiceTraffic } from './service-series.js';

/** What was counted of all Services. */
export interface CountedTraffic {
  /** When the kernel's counts were last read, on the process's clock. Until another reading the numbers stay. */
  readonly at: number;
  readonly services: readonly ServiceTraffic[];
}

/** What goes through Services, and what does not, counted. */
export interface ServiceTelemetry extends CycleObserver {
  /** Asked at each scrape; does not reject. */
  families(): Promise<readonly MetricFamily[]>;
  /** What was known a moment ago; who asks again learns of what came since. */
  trafficOf(service: ObjectKey): readonly PortTraffic[];
  /** Of all Services, as it is now, unless the last reading is so recent that another would take more than its share of the time. */
  traffic(): Promise<CountedTraffic>;
  stop(): void;
}
