import { printEndpoint } from '../base/endpoint-list.js';
import { parseAddress, type IPAddress } from '../base/ip.js';
import { isPort } from '../base/protocol.js';

/** The ports kube-proxy has always listened on. */
export const HEALTHZ_PORT = 10256;
export const METRICS_PORT = 10249;

export interface HostPort {
  readonly address: IPAddress;
  readonly port: number;
}

/** Appends a port to a bare IP address; anything else is returned as it is. */
export function withPort(text: string, port: number): string {
  const address = parseAddress(text);
  if (address === null) return text;
  return printEndpoint(address, port);
}

/** Parses `IP:port` or `[IPv6]:port`. Anything else gives a problem in the words of Kubernetes' validation. */
export function parseHostPort(text: string): HostPort | string {
  const match = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text);
  if (match === null) return 'must be IP:port';
  const address = parseAddress(match[1] ?? match[2] ?? '');
  if (address === null) return 'must be a valid IP';
  const port = match[3] ?? '';
  return /^\d{1,5}$/.test(port) && isPort(Number(port)) ? { address, port: Number(port) } : 'must be a valid port';
}

/** As {@link parseHostPort}, for a listening address: port 0 selects a free port. */
export function parseListen(text: string): HostPort | string {
  const parsed = parseHostPort(text.replace(/:0$/, ':1'));
  if (typeof parsed === 'string') return parsed;
  return text.endsWith(':0') ? { ...parsed, port: 0 } : parsed;
}

export function isIPv4Text(text: string): boolean {
  return parseAddress(text)?.includes(':') === false;
}
