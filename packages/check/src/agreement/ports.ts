import { isUnspecified, parseAddress } from '../../../../src/base/ip.js';
import { DEFAULT_NODE_PORTS } from '../../../../src/base/protocol.js';
import { KIND } from '../../../../src/config/document.js';
import { parseHostPort } from '../../../../src/config/host-port.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { pathOf } from '../objects.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { argumentOf, findingAt, printPlace, sectionsOf, type Place } from './place.js';

/** What listens on a node, and the ports that Services take on all of them. */

interface Listener extends Place {
  readonly address: string;
  readonly port: number;
}

/** The default range of Linux. */
const EPHEMERAL = { first: 32_768, last: 60_999 };

/** Each listener is compared with all others. One run never has the files of more nodes. */
const MAX_LISTENERS = 1000;

interface PortRange {
  readonly first: number;
  readonly last: number;
}

export function portFindings(documents: readonly Document[]): readonly Finding[] {
  const listeners = documents.flatMap(listenersOf).slice(0, MAX_LISTENERS);
  const ranges = nodePortRanges(documents);
  const range = ranges[0]?.range ?? DEFAULT_NODE_PORTS;
  return [
    ...clashes(listeners),
    ...ranges.flatMap(({ place, range: { first, last } }) =>
      first <= EPHEMERAL.last && last >= EPHEMERAL.first
        ? [
            findingAt(
              'warning',
              'ephemeral-ports',
              place,
              'overlaps the ports that Linux gives to clients, 32768-60999',
            ),
          ]
        : [],
    ),
    ...listeners
      .filter(({ port }) => port >= range.first && port <= range.last)
      .map((place) =>
        findingAt(
          'error',
          'port-clash',
          place,
          `is one of the node ports ${range.first}-${range.last}, which a Service may get`,
        ),
      ),
    ...serviceNodePorts(documents, range, ranges.length > 0),
  ];
}

function listenersOf(document: Document): readonly Listener[] {
  const { proxy, section, kind } = document;
  if (proxy !== null)
    return (['healthzBindAddress', 'metricsBindAddress'] as const).flatMap((name) => {
      const parsed = parseHostPort(proxy[name]);
      return typeof parsed === 'string' ? [] : [{ document, path: `${KIND}.${name}`, value: proxy[name], ...parsed }];
    });
  if (section === null) return [];
  const [init] = kind === 'InitConfiguration' ? [section.section('localAPIEndpoint')] : [];
  switch (kind) {
    case 'KubeletConfiguration':
      return [
        ...listener(document, section, 'port', section.text('address')),
        ...listener(document, section, 'readOnlyPort', section.text('address')),
        ...listener(document, section, 'healthzPort', section.text('healthzBindAddress')),
      ];
    case 'InitConfiguration':
      return init === null || init === undefined ? [] : listener(document, init, 'bindPort', '0.0.0.0');
    default:
      return [];
  }
}

function listener(document: Document, section: Section, name: string, address: string): readonly Listener[] {
  const port = section.number(name) ?? 0;
  return port === 0 ? [] : [{ document, path: section.pathOf(name), value: String(port), address, port }];
}

/** Skips clashes within one kind of document: the kind's own rules report them. These are between documents of different kinds. */
function clashes(listeners: readonly Listener[]): readonly Finding[] {
  return listeners.flatMap((one, index) => {
    const other = listeners.slice(0, index).find((each) => each.port === one.port && share(each, one));
    const isSame = other === undefined || other.document.kind === one.document.kind;
    return isSame
      ? []
      : [findingAt('error', 'port-clash', one, `is taken by ${printPlace(other)} on a node with both`)];
  });
}

function share({ address: one }: Listener, { address: other }: Listener): boolean {
  const isAny = (text: string): boolean => {
    const address = parseAddress(text);
    return address === null || isUnspecified(address);
  };
  return one === other || isAny(one) || isAny(other);
}

function nodePortRanges(
  documents: readonly Document[],
): readonly { readonly place: Place; readonly range: PortRange }[] {
  return sectionsOf(documents, 'ClusterConfiguration')
    .flatMap(({ document, section }) => argumentOf(document, section.section('apiServer'), 'service-node-port-range'))
    .flatMap((place) => {
      const range = readRange(place.value);
      return range === null ? [] : [{ place, range }];
    });
}

/** `30000-32767`, `30000+2767` or a single port. */
function readRange(text: string): PortRange | null {
  const [, first, sign, other = first] = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.trim()) ?? [];
  if (first === undefined) return null;
  return { first: Number(first), last: sign === '+' ? Number(first) + Number(other) : Number(other) };
}

/** @param isSaid whether the range is in one of the files. */
function serviceNodePorts(
  documents: readonly Document[],
  { first, last }: PortRange,
  isNamed: boolean,
): readonly Finding[] {
  return documents.flatMap((document) => {
    const { row } = document;
    if (row?.kind !== 'Service') return [];
    const ports = [...row.ports.map(({ nodePort }) => nodePort), row.healthCheckNodePort].filter((port) => port !== 0);
    return ports
      .filter((port) => port < first || port > last)
      .map((port) => {
        const place = { document, path: `${pathOf('Service', row)}.spec`, value: String(port) };
        return findingAt(
          isNamed ? 'error' : 'warning',
          'node-port-range',
          place,
          `is no node port, as they are ${first}-${last}`,
        );
      });
  });
}
