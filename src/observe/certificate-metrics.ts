import type { Registry } from 'prom-client';
import type { CertificateObserver } from '../sources/kubernetes/certificate/keeper.js';
import type { HealthState } from '../record/health.js';
import { Definitions } from './instruments.js';

/** Tells how it stands with the client certificate that is asked for. */
export class CertificateMetrics extends Definitions implements CertificateObserver {
  private readonly requests = this.counter(
    'client_certificate_requests_total',
    'Requests for a client certificate by result.',
    ['result'],
  );
  private readonly ends = this.gauge(
    'client_certificate_expiration_timestamp_seconds',
    'When the issued client certificate expires.',
  );

  constructor(
    registry: Registry,
    private readonly health: HealthState,
  ) {
    super(registry, 'pointsman_', '');
  }

  certificateLacks(why: string | null): void {
    this.health.certificate = why;
  }

  certificateRequested(result: Parameters<CertificateObserver['certificateRequested']>[0]): void {
    this.requests.inc({ result });
  }

  certificateEnds(at: number): void {
    this.ends.set(at / 1000);
  }
}
