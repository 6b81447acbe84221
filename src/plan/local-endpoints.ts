import type { FrontendPlan, ServicePlan } from './types.js';

/** Ports of Services under traffic policy Local with endpoints, but none on this node: their packets are dropped. */
export interface PortsWithoutLocal {
  /** Under internalTrafficPolicy. */
  readonly internal: number;
  /** Under externalTrafficPolicy. */
  readonly external: number;
}

export const NO_PORTS: PortsWithoutLocal = { internal: 0, external: 0 };

/** Counts one Service's ports. However many addresses a port has, it counts once per policy. */
export function portsWithoutLocal(plan: ServicePlan): PortsWithoutLocal {
  const internal = new Set<string>();
  const external = new Set<string>();
  for (const frontend of plan.frontends) {
    if (!dropsAll(frontend)) continue;
    (frontend.kind === 'ClusterIP' ? internal : external).add(frontend.servicePort);
  }
  return { internal: internal.size, external: external.size };
}

/** A frontend drops, rather than rejects, if all of its endpoints are on other nodes. */
function dropsAll({ whenEmpty, endpoints, localEndpoints }: FrontendPlan): boolean {
  return whenEmpty === 'drop' && (localEndpoints ?? endpoints).count === 0;
}
