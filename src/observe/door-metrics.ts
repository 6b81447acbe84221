import type { Registry } from 'prom-client';
import type { DoorObserver } from '../serve/door.js';
import { Definitions } from './instruments.js';

/** Counts what happens in front of the pages on the metrics address. */
export class DoorMetrics extends Definitions implements DoorObserver {
  private readonly reloads = this.counter(
    'serving_reloads_total',
    'Changed files of what stands in front of the metrics address by what became of them.',
    ['flag', 'result'],
  );
  private readonly ends = this.gauge(
    'serving_certificate_expiration_timestamp_seconds',
    'When the certificate of the metrics address ends.',
  );

  constructor(registry: Registry) {
    super(registry, 'pointsman_', '');
  }

  reloaded(flag: string, result: 'applied' | 'refused'): void {
    this.reloads.inc({ flag, result });
  }

  certificateEnds(at: number): void {
    this.ends.set(at / 1000);
  }
}
