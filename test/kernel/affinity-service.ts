import type { Protocol } from '../../src/base/protocol.js';
import { usually } from '../support/extent.js';
import { endpoint, eventually, Lab, patience, type Traffic } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import type { Manifest } from '../support/lab/objects.js';
import { answeringNames, dualStack, IPV4, type DualStackOptions } from '../support/lab/packet-table.js';
import { ADDRESSES } from '../support/lab/topology.js';

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

/** How many requests show that a client stays: endpoints are drawn, or, as in mode ipvs, taken in turn. */
export function enough(drawn: number, inTurn = 3): number {
  return traitsOf(labMode()).takesTurns ? 2 * inTurn : drawn;
}

/** The one endpoint that answers all of these requests. */
export async function theOne(lab: Lab, traffic: Traffic, count = enough(usually(10, 20))): Promise<string> {
  const names = await answeringNames(lab, { timeoutMs: patience(3000), ...traffic }, count);
  return names.join('+');
}

export const CLUSTER_IP = endpoint(IPV4.clusterIP(41), 80);

/** 10.96.0.41 as ip_vs prints it. */
const IPVS_VIRTUAL = '0A600029';

export async function forgottenByIpvs(lab: Lab): Promise<void> {
  await eventually('ip_vs has forgotten', async () => {
    const known = await lab.output('node', ['cat', '/proc/net/ip_vs_conn']);
    return known.includes(IPVS_VIRTUAL) ? null : true;
  });
}

/** A slice where one pod is on another node. */
export function elsewhere(manifest: Manifest, pod: string): Manifest {
  const addresses: readonly string[] = Object.values(ADDRESSES[pod as (typeof PODS)[number]]);
  return JSON.parse(JSON.stringify(manifest), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('addresses' in value)) return value;
    const [address] = value.addresses as readonly string[];
    return addresses.includes(address ?? '') ? { ...value, nodeName: 'node-2' } : value;
  }) as Manifest;
}
