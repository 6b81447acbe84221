import type { Family } from '../../base/ip.js';
import { HCN_PORT_MAPPING_FLAGS, type HcnOperation } from '../../native/contract.js';
import type { FrontendKind } from '../../plan/types.js';
import type { LabelledCount, ModeCounts } from '../contract.js';
import type { Wanted } from './desired.js';
import type { LoadBalancer } from './load-balancers.js';
import { FAILED_LOAD_BALANCERS } from './failure-metrics.js';

type Operation = HcnOperation['type'];

const TYPES: Readonly<Record<FrontendKind, string>> = {
  ClusterIP: 'clusterip',
  NodePort: 'nodeport',
  ExternalIP: 'externalip',
  LoadBalancer: 'ingressip',
};

const ERRORS: Readonly<Record<string, string>> = {
  HCN_E_NETWORK_NOT_FOUND: 'network_not_found',
  HCN_E_PORT_ALREADY_EXISTS: 'port_already_exists',
  E_NOTIMPL: 'not_implemented',
  HCN_E_INVALID_IP: 'invalid_ip',
};

/** Load balancers that HNS refused to create, change or delete, as kube-proxy counts them. */
export class LoadBalancerFailures {
  private readonly counts = new Map<string, LabelledCount & { readonly name: string }>();

  add(operation: Operation, family: Family, type: string, errno: string | null): void {
    const { name } = FAILED_LOAD_BALANCERS[operation];
    const labels = { ip_family: family, lb_type: type, error: ERRORS[errno ?? ''] ?? 'other' };
    const key = `${name} ${Object.values(labels).join(' ')}`;
    this.counts.set(key, { name, labels, count: (this.counts.get(key)?.count ?? 0) + 1 });
  }

  read(): ModeCounts {
    const all = [...this.counts.values()];
    return Object.fromEntries(
      Object.values(FAILED_LOAD_BALANCERS).map(({ name }) => [name, all.filter((each) => each.name === name)]),
    );
  }
}

/** The label of a load balancer. One that is wanted no more shows it by its flags, which external and ingress addresses share. */
export function typeOf(wanted: Wanted | undefined, held: LoadBalancer | undefined): string {
  if (wanted !== undefined) return wanted.endpoints === null ? 'healthcheck' : TYPES[wanted.plan.kind];
  const flags = held?.portFlags ?? 0;
  if ((flags & HCN_PORT_MAPPING_FLAGS.localRoutedVip) !== 0) return 'nodeport';
  return (flags & HCN_PORT_MAPPING_FLAGS.vipExternalIp) === 0 ? 'clusterip' : 'externalip';
}
