import { addressLength, parseAddress, type IPAddress } from '../base/ip.js';
import { unpackAddress } from '../base/pack-address.js';
import { hasName, unpackNames } from '../base/unpacked-names.js';
import { parseNamed, parseQuestion, QuestionError, type NamedTarget, type Question } from '../plan/question.js';
import type { ServicePortRow, ServiceRow } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';

/** How many candidates an answer lists. */
const MAX_LISTED = 10;

/**
 * The packet that is meant: `to` in any form, and `from` as of {@link parseQuestion} or the name of a pod, `pod` or `namespace/pod`.
 *
 * @throws QuestionError
 */
export function resolveQuestion(snapshot: Snapshot, from: string, to: string): Question {
  const senders = podAddresses(snapshot, from);
  const target = resolveTarget(snapshot, senders[0] ?? from, to);
  const sender = senders.find((address) => address.includes(':') === target.startsWith('['));
  return parseQuestion(sender ?? senders[0] ?? from, target);
}

/** Addresses of the pod of this name, IPv4 first; only of pods that are endpoints. */
function podAddresses(snapshot: Snapshot, from: string): readonly IPAddress[] {
  if (/^(?:external|node|[\d.]+)$/.test(from)) return [];
  const [name = '', namespace = null] = from.split('/').reverse();
  const found = new Map<string, Set<IPAddress>>();
  for (const { namespace: own, family, addresses, pods = '' } of snapshot.slices()) {
    if ((namespace !== null && namespace !== own) || !hasName(pods, name)) continue;
    const length = addressLength(family);
    const index = unpackNames(pods).indexOf(name);
    const ofPod = found.get(own) ?? new Set();
    found.set(own, ofPod.add(unpackAddress(addresses.slice(index * length, (index + 1) * length))));
  }
  if (found.size > 1)
    throw new QuestionError(`--from: which of ${[...found.keys()].map((own) => `${own}/${name}`).join(', ')}`);
  const all = [...found.values()].flatMap((ofPod) => [...ofPod]);
  const isV6 = (address: IPAddress): boolean => address.includes(':');
  return [...all.filter((address) => !isV6(address)), ...all.filter(isV6)];
}

/**
 * The destination as `address:port/protocol`, whatever form it was given in.
 *
 * @param from by whose family an address of the Service is chosen.
 * @throws QuestionError which lists what could have been meant.
 */
function resolveTarget(snapshot: Snapshot, from: string, to: string): string {
  if (/^(?:\[[^\]]*\]|[\d.]+):\d+(?:\/\w+)?$/.test(to)) return to;
  const target = parseNamed(to);
  if (target === null) return to;
  const address = parseAddress(target.name.replace(/^\[(.*)\]$/, '$1'));
  if (address !== null) return ofAddress(snapshot, address, target, to);
  const service = oneService(snapshot, target, to);
  const port = onePort(service, target, to);
  const own = service.clusterIPs.filter((ip) => !from.includes(':') || ip.includes(':'))[0] ?? service.clusterIPs[0];
  if (own === undefined)
    throw new QuestionError(`destination ${JSON.stringify(to)}: ${nameOf(service)} has no cluster IP`);
  return print(own, port.port, port.protocol);
}

function ofAddress(snapshot: Snapshot, address: IPAddress, { port, protocol }: NamedTarget, to: string): string {
  if (port !== null) return print(address, port, protocol ?? 'TCP');
  for (const service of snapshot.services()) {
    const { clusterIPs, externalIPs, loadBalancerIngress, ports } = service;
    const own = [...clusterIPs, ...externalIPs, ...loadBalancerIngress.map((each) => each.address)];
    if (!own.includes(address)) continue;
    const [only] = ports;
    if (only !== undefined && ports.length === 1) return print(address, only.port, only.protocol);
    throw new QuestionError(`destination ${JSON.stringify(to)}: which port of ${nameOf(service)}: ${listPorts(ports)}`);
  }
  throw new QuestionError(`destination ${JSON.stringify(to)}: no Service has the address, and there is no port`);
}

function oneService(snapshot: Snapshot, { namespace, name }: NamedTarget, to: string): ServiceRow {
  const found: ServiceRow[] = [];
  for (const service of snapshot.services())
    if (service.name === name && (namespace === null || service.namespace === namespace)) found.push(service);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const what = `destination ${JSON.stringify(to)}`;
  if (only === undefined)
    throw new QuestionError(`${what}: there is no Service ${namespace === null ? name : `${namespace}/${name}`}`);
  throw new QuestionError(`${what}: which of ${found.slice(0, MAX_LISTED).map(nameOf).join(', ')}`);
}

function onePort(service: ServiceRow, { port, protocol }: NamedTarget, to: string): ServicePortRow {
  const found = service.ports.filter(
    (row) =>
      (port === null || row.name === port || String(row.port) === port) &&
      (protocol === null || row.protocol === protocol),
  );
  const [first] = found;
  if (first !== undefined && (found.length === 1 || port !== null)) return first;
  const ports = listPorts(service.ports);
  const problem =
    found.length > 0 || port === null
      ? `which port of ${nameOf(service)}: ${ports}`
      : `${nameOf(service)} has no port ${port}${protocol === null ? '' : `/${protocol}`}, it has ${ports}`;
  throw new QuestionError(`destination ${JSON.stringify(to)}: ${problem}`);
}

function nameOf({ namespace, name }: ServiceRow): string {
  return `${namespace}/${name}`;
}

function listPorts(ports: readonly ServicePortRow[]): string {
  const listed = ports
    .slice(0, MAX_LISTED)
    .map(({ name, port, protocol }) => `${name === '' ? '' : `${name} `}${port}/${protocol}`);
  return `${listed.join(', ')}${ports.length > MAX_LISTED ? ', …' : ''}`;
}

function print(address: IPAddress, port: number | string, protocol: string): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}/${protocol}`;
}
