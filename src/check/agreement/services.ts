import { FAMILIES, parseAddress, type IPAddress } from '../../base/ip.js';
import type { PlanSettings } from '../../plan/facts.js';
import { Planner } from '../../plan/planner.js';
import { printHolder } from '../../plan/text.js';
import type { Row, ServiceRow } from '../../state/rows.js';
import { objectKey, refOf } from '../../state/rows.js';
import { Store } from '../../state/store.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { pathOf } from '../objects.js';
import { findingAt, type Place } from './place.js';
import { PrefixIndex } from './prefix-index.js';

/** Services that no node could program, by the code that plans them on a node. */

/** Of a node that is none of the cluster's, in no special mode: what clashes there clashes everywhere. */
function settings(bindAddress: IPAddress): PlanSettings {
  return {
    traits: {
      guardsClusterAddresses: true,
      guardsServiceAddresses: false,
      prefersLocal: false,
      servesLocalhost: false,
      balancesOnly: false,
    },
    nodeName: '',
    bindAddress,
    allowExternalIPs: true,
    localDetection: { type: 'ClusterCIDR', prefixes: [] },
    masqueradeAll: false,
    masqueradeBit: 14,
    nodePortAddresses: [],
  };
}

export function serviceFindings(documents: readonly Document[]): readonly Finding[] {
  const objects = documents.flatMap((document) => (document.row === null ? [] : [{ document, row: document.row }]));
  if (objects.length === 0) return [];
  // As in a file of manifests, the first of one name counts.
  const first = [...new Map([...objects].reverse().map((object) => [keyOf(object.row), object])).values()].reverse();
  return [...repeated(objects), ...conflicts(first), ...healthChecks(first), ...takenAddresses(first)];
}

interface ObjectDocument {
  readonly document: Document;
  readonly row: Row;
}

interface ServiceDocument extends ObjectDocument {
  readonly row: ServiceRow;
}

function servicesOf(objects: readonly ObjectDocument[]): readonly ServiceDocument[] {
  return objects.flatMap(({ document, row }) => (row.kind === 'Service' ? [{ document, row }] : []));
}

function placeOf({ document, row }: ObjectDocument, path: string, value: string): Place {
  return { document, path: `${pathOf(row.kind, refOf(row))}${path}`, value };
}

function keyOf(row: Row): string {
  const { kind, namespace, name } = refOf(row);
  return `${kind}/${objectKey(namespace, name)}`;
}

function repeated(objects: readonly ObjectDocument[]): readonly Finding[] {
  const first = new Map<string, Document>();
  return objects.flatMap((object) => {
    const key = keyOf(object.row);
    const other = first.get(key);
    if (other === undefined) first.set(key, object.document);
    if (other === undefined) return [];
    return [
      findingAt(
        'error',
        'unique',
        placeOf(object, '', refOf(object.row).name),
        `is also in ${other.file}, document ${other.document}`,
      ),
    ];
  });
}

/** Addresses and ports that several Services claim, and Services that cannot be planned. */
function conflicts(objects: readonly ObjectDocument[]): readonly Finding[] {
  const unspecified = parseAddress('0.0.0.0');
  if (unspecified === null) return [];
  const store = new Store();
  const writer = store.register('files');
  writer.apply(objects.map(({ row }) => ({ type: 'upsert', row })));
  writer.complete();
  const planner = new Planner(settings(unspecified));
  planner.update(store.snapshot, store.takeChanges());
  const services = new Map(
    servicesOf(objects).map((service) => [objectKey(service.row.namespace, service.row.name), service]),
  );
  return FAMILIES.flatMap((family) =>
    [...planner.tables[family].conflicts()].flatMap((conflict) => {
      // `namespace/name:port`, of which neither of the first two has a colon.
      const [key = ''] = conflict.loser.split(':');
      const service = services.get(key);
      if (service === undefined) return [];
      return [
        findingAt(
          'error',
          'service-conflict',
          placeOf(service, '', conflict.loser),
          `does not get what it claims: ${printHolder(conflict)}`,
        ),
      ];
    }),
  );
}

/** Each is a listener on every node. */
function healthChecks(objects: readonly ObjectDocument[]): readonly Finding[] {
  const holders = new Map<number, string>();
  const services = servicesOf(objects);
  for (const { row } of services)
    for (const { nodePort } of row.ports) if (nodePort !== 0) holders.set(nodePort, pathOf(row.kind, refOf(row)));
  return services
    .filter(({ row }) => row.healthCheckNodePort !== 0)
    .flatMap((service) => {
      const port = service.row.healthCheckNodePort;
      const holder = holders.get(port);
      holders.set(port, pathOf(service.row.kind, refOf(service.row)));
      const place = placeOf(service, '.spec.healthCheckNodePort', String(port));
      return holder === undefined ? [] : [findingAt('error', 'port-clash', place, `is a port of ${holder} already`)];
    });
}

/** External addresses that are a Node's, or within the range of Services. */
function takenAddresses(objects: readonly ObjectDocument[]): readonly Finding[] {
  const nodes = new Map<string, string>();
  for (const { row } of objects)
    if (row.kind === 'Node') for (const address of row.addresses) nodes.set(address, row.name);
  const cidrs = objects.flatMap(({ row }) => (row.kind === 'ServiceCIDR' ? row.cidrs : []));
  const ranges = new PrefixIndex(cidrs.map((cidr) => [cidr, cidr]));
  return servicesOf(objects).flatMap((service) => {
    const { externalIPs, loadBalancerIngress } = service.row;
    const claims: readonly (readonly [path: string, address: IPAddress])[] = [
      ...externalIPs.map((address) => ['.spec.externalIPs', address] as const),
      ...loadBalancerIngress.map(({ address }) => ['.status.loadBalancer.ingress', address] as const),
    ];
    return claims.flatMap(([path, address]) => {
      const place = placeOf(service, path, address);
      const node = nodes.get(address);
      if (node !== undefined) return [findingAt('error', 'taken-address', place, `is an address of Node ${node}`)];
      const range = ranges.holding(address);
      return range === undefined
        ? []
        : [findingAt('error', 'taken-address', place, `is within the range of Services ${range}`)];
    });
  });
}
