import type { Registry as PromRegistry } from 'prom-client';
import Registry from 'prom-client/lib/registry.js';
import { printableLine } from '../base/printable.js';
import { expose, type ExpositionFormat } from './exposition.js';
import { Definitions } from './instruments.js';

/** The one check that answering at all is the answer to. */
const PING = 'ping';

class CheckInstruments extends Definitions {
  readonly state = this.gauge('kubernetes_healthcheck', '1 when the check last passed.', ['name', 'type']);
  readonly runs = this.counter('kubernetes_healthchecks_total', 'Checks by outcome.', ['name', 'type', 'status']);

  constructor(registry: PromRegistry) {
    super(registry, '', '[STABLE] ');
  }
}

/**
 * The /healthz that every Kubernetes component has: whether the process answers, not whether it does its work, which is asked at the health
 * server. What was answered is counted in metrics of its own (KEP-3466).
 */
export class ComponentHealth {
  private readonly registry: PromRegistry = new Registry();
  private readonly instruments = new CheckInstruments(this.registry);

  /** The body of an answer, always of status 200; `verbose` and `exclude` act as at the API server. */
  check(query: URLSearchParams): string {
    const excluded = query.getAll('exclude').filter((name) => name !== '');
    const unknown = excluded.filter((name) => name !== PING).map((name) => printableLine(JSON.stringify(name)));
    const isExcluded = excluded.includes(PING);
    if (!isExcluded) this.record();
    if (!query.has('verbose')) return 'ok';
    const warning =
      unknown.length > 0 ? `warn: some health checks cannot be excluded: no matches for ${unknown.join(',')}\n` : '';
    return `[+]${PING} ${isExcluded ? 'excluded: ok' : 'ok'}\n${warning}healthz check passed\n`;
  }

  scrape(format: ExpositionFormat): Promise<string> {
    return expose(this.registry, format);
  }

  reset(): void {
    this.registry.resetMetrics();
  }

  private record(): void {
    const labels = { name: PING, type: 'healthz' };
    this.instruments.state.set(labels, 1);
    this.instruments.runs.inc({ ...labels, status: 'success' });
  }
}
