import type { Registry } from 'prom-client';
import type { Family } from '../base/ip.js';
import type { ListenerMetricNames } from '../dataplane/mode.js';
import { Definitions } from './instruments.js';

const FAMILY = ['ip_family'];

/** kube-proxy's metrics of listeners for node ports on loopback (behaviour SV-36). */
export class ListenerMetrics extends Definitions {
  private readonly listeners;
  private readonly failures;

  constructor(registry: Registry, { open, failures }: ListenerMetricNames) {
    super(registry, 'kubeproxy_', '[ALPHA] ');
    this.listeners = this.gauge(open.name, open.help, FAMILY);
    this.failures = this.counter(failures.name, failures.help, FAMILY);
  }

  open(family: Family, count: number): void {
    this.listeners.set({ ip_family: family }, count);
    this.failures.inc({ ip_family: family }, 0);
  }

  failed(family: Family): void {
    this.failures.inc({ ip_family: family });
  }
}
