import { EndpointList, printEndpoint } from '../../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family } from '../../base/ip.js';
import { protocolFromNumber } from '../../base/protocol.js';
import type {
  AddressOperation,
  IpsetName,
  IpsetOperation,
  IpvsOperation,
  IpvsService,
  IpvsTimeouts,
} from '../../native/contract.js';
import { LINK } from './names.js';
import { elementSize } from './wire.js';

/** Messages to the kernel beside rules. */
export type IpvsMessage =
  | { readonly type: 'services'; readonly operations: readonly IpvsOperation[] }
  | { readonly type: 'timeouts'; readonly timeouts: IpvsTimeouts }
  | { readonly type: 'sets'; readonly operations: readonly IpsetOperation[] }
  | { readonly type: 'addresses'; readonly operations: readonly AddressOperation[] };

/** A message as sorted text, a line for each object, in the syntax of `ipvsadm`, `ipset` and `ip address`. */
export function printMessage(message: IpvsMessage): readonly string[] {
  switch (message.type) {
    case 'services':
      return message.operations.flatMap(printIpvs).sort();
    case 'timeouts': {
      const { tcp, tcpFin, udp } = message.timeouts;
      return [`ipvsadm --set ${tcp} ${tcpFin} ${udp}`];
    }
    case 'sets':
      return message.operations.flatMap(printSet).sort();
    case 'addresses':
      return message.operations.flatMap(printAddresses).sort();
  }
}

const SERVICE_VERBS = { new: '-A', set: '-E', delete: '-D' } as const;
const DESTINATION_VERBS = { new: '-a', set: '-e', delete: '-d' } as const;

function printIpvs(operation: IpvsOperation): readonly string[] {
  const { service } = operation;
  const name = `${protocolOption(service)} ${printServiceEndpoint(service)}`;
  if (operation.type === 'service') {
    const { verb, state } = operation;
    return [`ipvsadm ${SERVICE_VERBS[verb]} ${name}${state === null ? '' : printState(state)}`];
  }
  const { verb, weight, endpoints } = operation;
  const end = verb === 'delete' ? '' : ` -m -w ${weight}`;
  const list = new EndpointList(service.family, endpoints);
  return list.toStrings().map((endpoint) => `ipvsadm ${DESTINATION_VERBS[verb]} ${name} -r ${endpoint}${end}`);
}

/** As `ipvsadm -Sn` spells it. */
export function printState({
  scheduler,
  timeoutSeconds,
  flags,
}: Extract<IpvsOperation, { readonly type: 'service'; readonly verb: 'new' | 'set' }>['state']): string {
  const names = SCHEDULER_FLAGS.filter(({ bit }) => (flags & bit) !== 0).map(({ any, hashing }) =>
    hashing !== null && HASHING.includes(scheduler) ? `${scheduler}-${hashing}` : any,
  );
  const persistence = timeoutSeconds > 0 ? ` -p ${timeoutSeconds}` : '';
  const onePacket = (flags & ONE_PACKET) === 0 ? '' : ' -o';
  return ` -s ${scheduler}${persistence}${onePacket}${names.length === 0 ? '' : ` -b ${names.join()}`}`;
}

const ONE_PACKET = 0x04;
const HASHING: readonly string[] = ['sh', 'mh'];
const SCHEDULER_FLAGS = [
  { bit: 0x08, any: 'flag-1', hashing: 'fallback' },
  { bit: 0x10, any: 'flag-2', hashing: 'port' },
  { bit: 0x20, any: 'flag-3', hashing: null },
] as const;

function protocolOption({ protocol }: Pick<IpvsService, 'protocol'>): string {
  return { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' }[protocolFromNumber(protocol) ?? 'TCP'];
}

export function printServiceEndpoint({ address, port }: IpvsService): string {
  return address === null ? '' : printEndpoint(addressFromBytes(address), port);
}

function printSet(operation: IpsetOperation): readonly string[] {
  switch (operation.type) {
    case 'create': {
      const { name, type, family, maxElements, comments, counters } = operation.set;
      const options = family === null ? 'range 0-65535' : `family ${FAMILY_WORDS[family]} maxelem ${maxElements}`;
      return [`ipset create ${name} ${type} ${options}${counters ? ' counters' : ''}${comments ? ' comment' : ''}`];
    }
    case 'destroy':
    case 'flush':
      return [`ipset ${operation.type} ${operation.name}`];
    case 'add':
      return printElements(operation.set, operation.elements).map((element, index) => {
        const comment = operation.comments?.[index] ?? '';
        return `ipset add ${operation.set.name} ${element}${comment === '' ? '' : ` comment "${comment}"`}`;
      });
    case 'delete':
      return printElements(operation.set, operation.elements).map(
        (element) => `ipset del ${operation.set.name} ${element}`,
      );
  }
}

const FAMILY_WORDS: Readonly<Record<Family, string>> = { IPv4: 'inet', IPv6: 'inet6' };

/** Packed elements as `ipset save` spells them. */
export function printElements({ type, family }: Omit<IpsetName, 'name'>, elements: Uint8Array): readonly string[] {
  const size = elementSize(family ?? 'IPv4', type);
  const length = addressLength(family ?? 'IPv4');
  return Array.from({ length: elements.length / size }, (_, index) => {
    const bytes = elements.subarray(index * size, (index + 1) * size);
    const address = (at: number): string => addressFromBytes(bytes.subarray(at, at + length));
    const port = (at: number): string => String(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0));
    if (type === 'bitmap:port') return port(0);
    if (type === 'hash:ip') return address(0);
    if (type === 'hash:net,net') return `${address(0)},${address(length)}`;
    const protocol = (protocolFromNumber(bytes[length + 2] ?? 0) ?? 'TCP').toLowerCase();
    const first = `${address(0)},${protocol}:${port(length)}`;
    if (type === 'hash:ip,port') return first;
    const second = `${first},${address(length + 3)}`;
    return type === 'hash:ip,port,ip' ? second : `${second}/${bytes[size - 1] ?? 0}`;
  });
}

function printAddresses({ type, family, addresses }: AddressOperation): readonly string[] {
  const length = addressLength(family);
  return Array.from({ length: addresses.length / length }, (_, index) => {
    const address = addressFromBytes(addresses.subarray(index * length, (index + 1) * length));
    return `ip address ${type === 'add' ? 'add' : 'del'} ${address}/${length * 8} dev ${LINK}`;
  });
}
