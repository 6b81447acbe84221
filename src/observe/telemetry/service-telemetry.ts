import type { ObjectKey } from '../../state/rows.js';
import type { CycleObserver } from '../cycle-observer.js';
import type { MetricFamily } from '../exposition.js';
import type { PortTraffic, ServiceTraffic } from './service-series.js';

/** What goes through Services, and what does not, counted. */
export interface ServiceTelemetry extends CycleObserver {
  /** Asked at each scrape; does not reject. */
  families(): Promise<readonly MetricFamily[]>;
  /** What was known a moment ago; who asks again learns of what came since. */
  trafficOf(service: ObjectKey): readonly PortTraffic[];
  /** Of all Services, as it is now. */
  traffic(): Promise<readonly ServiceTraffic[]>;
  stop(): void;
}
