import { printEndpoint } from '../base/endpoint-list.js';
import { parseAddress, type IPAddress } from '../base/ip.js';
import { isPort, parseProtocol, type Protocol } from '../base/protocol.js';
import type { ClientKeys, FamilyTable, FrontendKey, FrontendPlan, ObjectKey } from './types.js';

const NODE_PORT = 'nodeport';

/** The key of a frontend; a null address stands for node ports. */
export function frontendKey(address: IPAddress | null, port: number, protocol: Protocol): FrontendKey {
  if (address === null) return `${NODE_PORT}:${port}/${protocol}`;
  return `${printEndpoint(address, port)}/${protocol}`;
}

/** Whether a key is of a node port, at any address. */
export function isNodePortKey(key: FrontendKey): boolean {
  return key.startsWith(`${NODE_PORT}:`);
}

/** Whether a key is of UDP or SCTP, whose flows do not end by themselves. */
export function isDatagramKey(key: FrontendKey): boolean {
  return !key.endsWith('/TCP');
}

/** The parts of a key made by {@link frontendKey}; throws a TypeError for anything else. */
export function parseFrontendKey(key: FrontendKey): {
  readonly address: IPAddress | null;
  readonly port: number;
  readonly protocol: Protocol;
} {
  const colon = key.lastIndexOf(':');
  const slash = key.lastIndexOf('/');
  const host = key.startsWith('[') ? key.slice(1, colon - 1) : key.slice(0, colon);
  const address = host === NODE_PORT ? null : parseAddress(host);
  const port = Number(key.slice(colon + 1, slash));
  const protocol = parseProtocol(key.slice(slash + 1));
  if (protocol === null || !isPort(port) || frontendKey(address, port, protocol) !== key)
    throw new TypeError(`not a frontend key: ${key}`);
  return { address, port, protocol };
}

/**
 * The keys by which the frontend's clients are remembered, if it shares them with other frontends of the Service port; null
 * if it remembers its clients alone. A key that another Service holds is not shared: that Service's clients must not be
 * taken for ours.
 */
export function heldClientKeys(
  { clientKeys, servicePort }: FrontendPlan,
  table: Pick<FamilyTable, 'frontend'>,
): ClientKeys | null {
  if (clientKeys === null) return null;
  const { cluster, local } = clientKeys;
  const own = (key: FrontendKey): boolean => table.frontend(key)?.servicePort === servicePort;
  return own(cluster) && (local === null || own(local.key)) ? clientKeys : null;
}

/**
 * The key by which a frontend's clients are looked up. The list of a cluster IP has the cluster IP's own key.
 *
 * @param isLocal whether the connection uses {@link FrontendPlan.localEndpoints}.
 */
export function clientKeyOf(
  { kind, key }: FrontendPlan,
  { cluster, local }: ClientKeys,
  isLocal: boolean,
): FrontendKey {
  if (isLocal && local !== null) return local.key;
  return kind === 'ClusterIP' ? key : cluster;
}

/**
 * The name of a Service port: `namespace/name:port`, or `namespace/name` for a port without a name. No namespace, name or port
 * name has a colon (RFC 1123). Joined for the same reason as {@link objectKey}.
 */
export function servicePortName(key: ObjectKey, port: string): string {
  return port === '' ? key : [key, port].join(':');
}

/** The Service of a Service port. */
export function serviceOf(servicePort: string): ObjectKey {
  const [key = ''] = servicePort.split(':', 1);
  return key;
}

export function namespaceOf(service: ObjectKey): string {
  return service.slice(0, service.indexOf('/'));
}

/** The name of a Service port within its Service; empty for one without a name. */
export function portNameOf(servicePort: string): string {
  return servicePort.split(':', 2)[1] ?? '';
}
