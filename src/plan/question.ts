import { familyOf, parseAddress, type IPAddress } from '../base/ip.js';
import { isPort, parseProtocol, type Protocol } from '../base/protocol.js';

/** The sender: a client outside the cluster, this node itself, any client behind an interface, or an address. */
export type Sender =
  | { readonly type: 'external' | 'node' }
  | { readonly type: 'interface'; readonly name: string }
  | {
      readonly type: 'address';
      readonly address: IPAddress;
      /** The input interface of its packets; null: not known, or none. */
      readonly interface: string | null;
    };

/** The packet to explain: the first of a connection. */
export interface Question {
  readonly sender: Sender;
  readonly destination: IPAddress;
  readonly port: number;
  readonly protocol: Protocol;
}

/** A destination that is not an address: a Service, or a port of it. */
export interface NamedTarget {
  /** Null: not specified. */
  readonly namespace: string | null;
  readonly name: string;
  /** A number or a name; null: not specified. */
  readonly port: string | null;
  /** Null: not specified. */
  readonly protocol: Protocol | null;
}

/** Schemes with well-known ports. */
const SCHEME_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * A destination that is no address: `web.shop`, `shop/web:http`, `svc/web`, `web.shop.svc.cluster.local:80`, or a URL of one
 * of these; null: it is none of these. The same for a URL with an address, whose host comes back as the name.
 */
export function parseNamed(text: string): NamedTarget | null {
  const [, scheme = '', rest = text] = /^(\w+):\/\/([^/?#]*).*$/.exec(text) ?? [];
  if (scheme !== '' && SCHEME_PORTS[scheme] === undefined) return null;
  const [, host = '', portText = '', protocolText = ''] =
    /^(\[[^\]]*\]|[^\s:[\]]+?)(?::([\w-]+))?(?:\/(tcp|udp|sctp))?$/i.exec(rest) ?? [];
  if (host === '') return null;
  const protocol = protocolText === '' ? null : parseProtocol(protocolText.toUpperCase());
  const port = portText !== '' ? portText : (SCHEME_PORTS[scheme] ?? null);
  const bare = host.replace(/^(?:svc|service|services)\//, '');
  if (parseAddress(host.replace(/^\[(.*)\]$/, '$1')) !== null) return { namespace: null, name: host, port, protocol };
  const [first = '', second = null, ...more] = bare.includes('/') ? bare.split('/').reverse() : bare.split('.');
  if (bare.includes('/') ? more.length > 0 : more.length > 0 && more[0] !== 'svc') return null;
  return { namespace: second, name: first, port, protocol };
}

/** A question that cannot be asked; the message names the part and its value. */
export class QuestionError extends Error {
  override readonly name = 'QuestionError';
}

/**
 * @param from `external`, `node`, an address, an interface, or `address%interface`.
 * @param to `address:port/protocol`, IPv6 addresses in brackets; without a protocol TCP is meant.
 * @throws QuestionError
 */
export function parseQuestion(from: string, to: string): Question {
  const target = parseTarget(to);
  const sender = parseSender(from);
  if (sender.type === 'address' && familyOf(sender.address) !== familyOf(target.destination))
    throw new QuestionError(
      `--from: ${quote(from)} cannot send to ${quote(to)}: the addresses are of different families`,
    );
  return { sender, ...target };
}

function parseTarget(text: string): Omit<Question, 'sender'> {
  const found = /^(?:\[([^\]:]*:[^\]]*)\]|([^[\]:]*)):(\d+)(?:\/(\w+))?$/.exec(text);
  if (found === null)
    throw new QuestionError(`destination ${quote(text)}: must be address:port/protocol, with IPv6 in brackets`);
  const [, v6, v4, digits, protocolText = 'TCP'] = found;
  const destination = parseAddress(v6 ?? v4 ?? '');
  if (destination === null)
    throw new QuestionError(`destination ${quote(text)}: ${quote(v6 ?? v4 ?? '')} is no IP address`);
  const port = Number(digits);
  if (!isPort(port)) throw new QuestionError(`destination ${quote(text)}: the port must be 1 to 65535`);
  const protocol = parseProtocol(protocolText.toUpperCase());
  if (protocol === null) throw new QuestionError(`destination ${quote(text)}: the protocol must be TCP, UDP or SCTP`);
  return { destination, port, protocol };
}

function parseSender(text: string): Sender {
  if (text === 'external' || text === 'node') return { type: text };
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  const percent = bare.indexOf('%');
  const address = parseAddress(percent < 0 ? bare : bare.slice(0, percent));
  const name = percent < 0 ? null : bare.slice(percent + 1);
  if (address !== null && (name === null || isInterfaceName(name)))
    return { type: 'address', address, interface: name };
  // A text like an address is a misspelt address.
  if (address === null && isInterfaceName(bare) && !/^[\d.]+$/.test(bare)) return { type: 'interface', name: bare };
  throw new QuestionError(
    `--from: ${quote(text)} must be external, node, an IP address, a pod among the endpoints, an interface, or address%interface`,
  );
}

/** Linux takes up to 15 bytes as a name of an interface, without "/", ":" and white space (dev_valid_name). */
function isInterfaceName(text: string): boolean {
  return /^[^\s/:%]{1,15}$/.test(text) && text !== '.' && text !== '..';
}

function quote(text: string): string {
  return JSON.stringify(text);
}
