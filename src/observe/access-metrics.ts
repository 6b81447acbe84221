import type { Registry } from 'prom-client';
import { Definitions } from './instruments.js';

/** Receives the events of access control, for metrics. */
export interface AccessObserver {
  /** Files of a flag were read after the start, and are used from now on or cannot be. */
  reloaded(flag: string, result: 'applied' | 'refused'): void;
  /** Somebody said who it is, or could not. */
  authenticated(result: 'success' | 'anonymous' | 'failure' | 'error'): void;
  authorized(result: 'allowed' | 'denied' | 'error'): void;
  /** An API server was asked for a judgement. */
  reviewed(kind: string, result: 'answered' | 'failed'): void;
  /** So many Events about requests were written, or lost. */
  audited(result: 'written' | 'dropped', count: number): void;
  /** When the certificate that is served ends, in milliseconds since the epoch. */
  certificateEnds(at: number): void;
}

/** Counts what happens in front of the pages on the metrics address. */
export class AccessMetrics extends Definitions implements AccessObserver {
  private readonly reloads = this.counter(
    'serving_reloads_total',
    'Changed TLS and access files of the metrics address by result.',
    ['flag', 'result'],
  );
  private readonly ends = this.gauge(
    'serving_certificate_expiration_timestamp_seconds',
    'When the certificate of the metrics address expires.',
  );

  private readonly authentications = this.counter(
    'serving_authentication_attempts_total',
    'Requests to the metrics address by whether the client could be identified.',
    ['result'],
  );
  private readonly authorizations = this.counter(
    'serving_authorization_attempts_total',
    'Requests of authenticated users to the metrics address by whether they were allowed.',
    ['result'],
  );
  private readonly reviews = this.counter(
    'serving_reviews_total',
    'Token and access reviews requested from an API server by result.',
    ['kind', 'result'],
  );

  private readonly audits = this.counter(
    'serving_audit_events_total',
    'Audit Events of the metrics address by whether they could be written.',
    ['result'],
  );

  constructor(registry: Registry) {
    super(registry, 'pointsman_', '');
  }

  reloaded(flag: string, result: 'applied' | 'refused'): void {
    this.reloads.inc({ flag, result });
  }

  authenticated(result: Parameters<AccessObserver['authenticated']>[0]): void {
    this.authentications.inc({ result });
  }

  authorized(result: Parameters<AccessObserver['authorized']>[0]): void {
    this.authorizations.inc({ result });
  }

  reviewed(kind: string, result: 'answered' | 'failed'): void {
    this.reviews.inc({ kind, result });
  }

  audited(result: 'written' | 'dropped', count: number): void {
    this.audits.inc({ result }, count);
  }

  certificateEnds(at: number): void {
    this.ends.set(at / 1000);
  }
}
