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

  private readonly authentications = this.counter(
    'serving_authentication_attempts_total',
    'Requests to the metrics address by whether it could be told who asks.',
    ['result'],
  );
  private readonly authorizations = this.counter(
    'serving_authorization_attempts_total',
    'Requests to the metrics address of known users by whether they may.',
    ['result'],
  );
  private readonly reviews = this.counter(
    'serving_reviews_total',
    'Judgements that an API server was asked for, by whether it gave one.',
    ['kind', 'result'],
  );

  private readonly audits = this.counter(
    'serving_audit_events_total',
    'Events about requests to the metrics address by whether they could be written.',
    ['result'],
  );

  constructor(registry: Registry) {
    super(registry, 'pointsman_', '');
  }

  reloaded(flag: string, result: 'applied' | 'refused'): void {
    this.reloads.inc({ flag, result });
  }

  authenticated(result: Parameters<DoorObserver['authenticated']>[0]): void {
    this.authentications.inc({ result });
  }

  authorized(result: Parameters<DoorObserver['authorized']>[0]): void {
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
