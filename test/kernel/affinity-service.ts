import type { Protocol } from '../../src/base/protocol.js';
import { endpoint, Lab, patience, type Traffic } from '../support/lab/lab.js';
import { answeringNames, dualStack, IPV4, type DualStackOptions } from '../support/lab/packet-table.js';

export const PODS = ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b'] as const;
export const LONG = 3600;
export const CLIENTS = [{ from: 'client' }, { from: 'blocked' }, { from: 'pod-b' }, { from: 'node' }] as const;

export function sticky(
  affinitySeconds: number | null,
  options: Partial<DualStackOptions> = {},
): ReturnType<typeof dualStack> {
  return dualStack('web', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    externals: [11],
    ports: (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      nodePort: 30001,
    })),
    endpoints: PODS,
    ...(affinitySeconds === null ? {} : { affinitySeconds }),
    ...options,
  });
}

export async function laboratory(
  t: Parameters<typeof Lab.start>[0],
  protocols: readonly Protocol[] = ['TCP'],
): Promise<Lab> {
  const lab = await Lab.start(t);
  await lab.serveAll(
    [...PODS, 'node'],
    protocols.map((protocol) => [80, protocol]),
  );
  return lab;
}

/** The one endpoint that answers all of these requests. */
export async function theOne(lab: Lab, traffic: Traffic, count = lab.isHere ? 6 : 20): Promise<string> {
  const names = await answeringNames(lab, { timeoutMs: patience(3000), ...traffic }, count);
  return names.join('+');
}

export const CLUSTER_IP = endpoint(IPV4.clusterIP(41), 80);
