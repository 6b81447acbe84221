/** Which of a node's HNS networks is the pods': the one of this name, the one whose name begins so, or the one of this type. */
export type HnsNetworkChoice =
  | { readonly by: 'name'; readonly text: string }
  | { readonly by: 'prefix'; readonly text: string }
  | { readonly by: 'type'; readonly text: string };

/** Types of networks that pods may have, as HNS spells them. */
const TYPES = ['L2Bridge', 'L2Tunnel', 'Overlay', 'NAT', 'Transparent', 'ICS', 'Private'];

/**
 * `NAME`, `PREFIX*`, or `type=TYPE`; HNS compares names without regard to case. `PREFIX.*`, as Calico's scripts have it in KUBE_NETWORK, is a prefix too.
 * Null: it is none of these.
 */
export function parseHnsNetwork(text: string): HnsNetworkChoice | null {
  const [, ofType] = /^type=(.*)$/i.exec(text) ?? [];
  if (ofType !== undefined) {
    const type = TYPES.find((known) => known.toLowerCase() === ofType.toLowerCase());
    return type === undefined ? null : { by: 'type', text: type };
  }
  const [, prefix] = /^(?!\.)([^*]+?)\.?\*$/.exec(text) ?? [];
  if (prefix !== undefined) return { by: 'prefix', text: prefix };
  return text === '' || text.includes('*') ? null : { by: 'name', text };
}

/** Whether it may be the name of an HNS endpoint, and is no mistaken address. */
export function isEndpointName(text: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(text) && text.length <= 255;
}
