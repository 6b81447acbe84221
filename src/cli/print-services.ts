import { greatest } from '../base/extremes.js';
import { counted, trimEnd } from '../base/text.js';
import type {
  Endpoint,
  EndpointGroup,
  Frontend,
  PortTraffic,
  ServiceDetail,
  ServiceProblem,
  ServicesPage,
  ServiceSummary,
} from '../serve/service-answers.js';

const HEADER = ['SERVICE', 'TYPE', 'ADDRESS', 'PORTS', 'ENDPOINTS', 'PROBLEMS'];

const PROBLEM_WORDS: Readonly<Record<ServiceProblem, string>> = {
  refused: 'object refused',
  unplanned: 'cannot be planned',
  quarantined: 'refused by the kernel',
  conflict: 'in conflict',
  'port-name': 'no such endpoint port',
  'no-endpoints': 'no endpoints',
  'no-local-endpoints': 'no local endpoints',
  'left-out': 'parts left out',
  limitation: 'partly served',
};

/** A list for people. @param isWide with all addresses and ports that are known, and with nodes and pods of endpoints. */
export function printServices({ total, matched, rows }: ServicesPage, isWide: boolean): readonly string[] {
  const more = matched - rows.length;
  const all = counted(total, 'Service');
  const shown = matched === total ? all : `${matched} of ${all}`;
  const header = isWide ? [...HEADER.slice(0, -1), 'NODES', 'PODS', ...HEADER.slice(-1)] : HEADER;
  return [
    ...(rows.length === 0 ? [] : columns([header, ...rows.map((row) => cellsOf(row, isWide))])),
    ...(more > 0 ? [`and ${more} more; --limit 0 lists all`] : []),
    ...(rows.length === 0 ? ['no Service matches'] : []),
    shown,
  ];
}

function cellsOf(row: ServiceSummary, isWide: boolean): readonly string[] {
  const { key, type, addresses, moreAddresses, ports, morePorts, endpointsUsed, endpoints, problems } = row;
  const shown = (list: readonly string[], more: number): string => {
    const first = isWide ? list : list.slice(0, 1);
    const rest = list.length - first.length + more;
    return first.length === 0 ? '-' : `${first.join(',')}${rest > 0 ? ` +${rest}` : ''}`;
  };
  return [
    key,
    type ?? '-',
    shown(addresses, moreAddresses),
    shown(ports, morePorts),
    `${endpointsUsed}/${endpoints}`,
    ...(isWide ? [row.places?.nodes, row.places?.pods].map((each) => shown(each?.names ?? [], each?.more ?? 0)) : []),
    problems.length === 0 ? '-' : problems.map((problem) => PROBLEM_WORDS[problem]).join(', '),
  ];
}

/** Cells below each other. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => greatest(rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) => trimEnd(cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '), ' '));
}

/** One Service for people. */
export function printService(service: ServiceDetail): readonly string[] {
  const { key, type, nothing, policies, affinitySeconds, healthCheck, sourceRanges, limitations, unplanned, leftOut } =
    service;
  const lines = (title: string, texts: readonly string[]): readonly string[] =>
    texts.map((text, index) => `${(index === 0 ? title : '').padEnd(12)}${text}`);
  const addresses = [
    ...service.clusterIPs.map((address) => `${address}, cluster IP`),
    ...service.loadBalancer.map(
      ({ address, mode }) => `${address}, load balancer${mode === 'Proxy' ? ' (left to it)' : ''}`,
    ),
    ...service.externalIPs.map((address) => `${address}, external IP`),
  ];
  return [
    `${key}, ${type}`,
    ...lines('addresses', addresses),
    ...lines('ports', service.ports.map(printPort)),
    ...lines('policies', [`internal ${policies.internal}, external ${policies.external}`]),
    ...lines('affinity', affinitySeconds === null ? [] : [`ClientIP, ${affinitySeconds} s`]),
    ...lines('admits', sourceRanges),
    ...lines(
      'health',
      healthCheck === null ? [] : [`port ${healthCheck.port}, ${healthCheck.localEndpoints} local endpoints`],
    ),
    ...lines('forwards', nothing === null ? [] : [`nothing: ${nothing}`]),
    ...lines('frontends', [
      ...service.frontends.map(printFrontend),
      ...more(service.frontendCount - service.frontends.length),
    ]),
    ...service.endpoints.flatMap((group) => lines('endpoints', printGroup(group))),
    ...lines(
      'slices',
      service.slices.map(
        ({ name, family, endpoints, ports }) =>
          `${name}: ${family}, ${counted(endpoints, 'endpoint')}, ${ports.join(', ')}`,
      ),
    ),
    ...lines('traffic', (service.traffic ?? []).map(printTraffic)),
    ...lines('problems', [
      ...unplanned.map(({ family, reason }) => `${family}: cannot be planned: ${reason}`),
      ...service.frontends.flatMap(printFrontendProblems),
      ...limitations,
      ...leftOut,
    ]),
  ];
}

/** Whether there is something to look at. */
export function hasProblem({ unplanned, frontends, limitations, leftOut }: ServiceDetail): boolean {
  return (
    unplanned.length + limitations.length + leftOut.length > 0 ||
    frontends.some((each) => printFrontendProblems(each).length > 0)
  );
}

function printPort({ name, port, protocol, nodePort }: ServiceDetail['ports'][number]): string {
  return `${name === '' ? '' : `${name} `}${port}/${protocol}${nodePort === 0 ? '' : `, node port ${nodePort}`}`;
}

function printFrontend({ key, kind, endpoints, localEndpoints, whenEmpty }: Frontend): string {
  const local = localEndpoints === null ? '' : `, from outside to ${localEndpoints}`;
  const empty = (localEndpoints ?? endpoints) === 0 ? `; ${whenEmpty === 'drop' ? 'dropped' : 'refused'} without` : '';
  return `${key}  ${kind}  to ${counted(endpoints, 'endpoint')}${local}${empty}`;
}

function printFrontendProblems(frontend: Frontend): readonly string[] {
  const { key, endpoints, localEndpoints, whenEmpty, lostTo, claimedBy, quarantined } = frontend;
  const isEmpty = (localEndpoints ?? endpoints) === 0;
  const who = endpoints > 0 ? 'connections from outside' : 'connections';
  return [
    ...(isEmpty && whenEmpty === 'reject' ? [`${key}: no endpoint, ${who} are refused`] : []),
    ...(isEmpty && whenEmpty === 'drop' ? [`${key}: no endpoint on this node, ${who} are dropped`] : []),
    ...(lostTo === null ? [] : [`${key}: ${lostTo.reason}`]),
    ...claimedBy.map(({ servicePort }) => `${key}: ${servicePort} claims it as well, and does not get it`),
    ...(quarantined === null
      ? []
      : [`${key}: the kernel refuses it since ${quarantined.since}: ${quarantined.reason}`]),
  ];
}

function printGroup({ family, port, protocol, applies, used, total, rows }: EndpointGroup): readonly string[] {
  const name = port === '' ? protocol : `${port} ${protocol}`;
  return [
    `${family} ${name} ${applies}: ${used} of ${total} used`,
    ...columns(rows.map(cellsOfEndpoint)).map((line) => `  ${line}`),
    ...more(total - rows.length),
  ];
}

function cellsOfEndpoint({ endpoint, node, pod, used, reason, conditions }: Endpoint): readonly string[] {
  return [endpoint, node ?? '-', pod ?? '-', used ? 'used' : 'not used', reason ?? conditions.join(' ')];
}

function printTraffic({ port, protocol, connections, requestBytes, replyBytes, refused }: PortTraffic): string {
  const name = port === '' ? protocol : `${port} ${protocol}`;
  const drops = refused.map(({ verdict, reason, packets }) => `, ${packets} packets ${verdict} (${reason})`).join('');
  return `${name}: ${connections} connections, ${requestBytes} bytes in, ${replyBytes} bytes out${drops}`;
}

function more(count: number): readonly string[] {
  return count > 0 ? [`and ${count} more`] : [];
}
