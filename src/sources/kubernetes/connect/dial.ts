import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';
import { serverIdentity } from '../../../base/server-identity.js';
import type { TunnelAccess } from '../auth/access.js';
import type { Tunnel } from '../auth/egress.js';
import type { Proxy } from '../auth/proxy.js';
import type { TlsClient } from '../auth/tls-trust.js';
import { Attempt } from './attempt.js';

/** Where to connect to, and how. */
export interface Destination {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly proxy: Proxy | Tunnel | null;
  readonly tls: TlsClient | null;
  readonly userAgent: string;
  /** See {@link ConnectionOptions.limitSilence}. */
  readonly limitSilence: LimitSilence | null;
}

/** Has the kernel end a connection whose other end is silent. */
export type LimitSilence = (socket: Socket, idleSeconds: number, limitMs: number) => void;

/** An idle connection is probed after this time: a packet each way, every three seconds. */
const PROBED_AFTER_S = 3;
/** What is silent for so long is given up. Endpoints go on changing meanwhile, and packets go on to those that are gone. */
const SILENCE_MS = 8000;
const TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;
/** How long one address of a name may take before the next is tried; Node's own 250 ms is too short for some networks. */
const ADDRESS_ATTEMPT_MS = 2_000;

/**
 * Connects, through the proxy if there is one, up to the end of the TLS handshake; 30 s at most.
 *
 * @throws ApiError, or the signal's reason.
 */
export async function dial(destination: Destination, signal: AbortSignal): Promise<Socket> {
  const { host, port, proxy, tls } = destination;
  const attempt = new Attempt(printHostPort(host, port), signal, TIMEOUT_MS);
  let succeeded = false;
  try {
    const tunnel = await dialWay(attempt, destination, proxy);
    const socket =
      tls === null ? tunnel : await handshake(attempt, tunnel, tls.context, tls.serverName, tls.insecure, '');
    succeeded = true;
    return socket;
  } finally {
    attempt.end(succeeded);
  }
}

export function printHostPort(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What an HTTP proxy wants to see of a login. */
export function proxyAuthorization({ login }: Pick<Proxy, 'login'>): string | null {
  if (login === null) return null;
  return `Basic ${Buffer.from(`${login.username}:${login.password}`, 'utf8').toString('base64')}`;
}

function dialWay(attempt: Attempt, destination: Destination, proxy: Destination['proxy']): Promise<Socket> {
  if (proxy === null) return dialSocket(attempt, destination, 'TCP', destination);
  return proxy.type === 'tunnel' ? dialTunnel(attempt, destination, proxy) : dialProxy(attempt, destination, proxy);
}

async function dialSocket(
  attempt: Attempt,
  to: TunnelAccess['to'],
  detail: string,
  { limitSilence }: Pick<Destination, 'limitSilence'>,
): Promise<Socket> {
  const socket = connect({
    ...('path' in to ? { path: to.path } : { host: to.host, port: to.port }),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
  });
  await attempt.step(socket, 'connect', 'connect', detail);
  limitSilence?.(socket, PROBED_AFTER_S, SILENCE_MS);
  return socket;
}

async function dialProxy(attempt: Attempt, destination: Destination, proxy: Proxy): Promise<Socket> {
  const { host, port, tls, userAgent } = destination;
  const name = `proxy ${proxy.type}://${printHostPort(proxy.host, proxy.port)}`;
  const plain = await dialSocket(attempt, proxy, name, destination);
  if (proxy.type === 'socks5') {
    const { socksConnect } = await import('./socks5.js');
    await socksConnect(attempt, plain, proxy, host, port);
    return plain;
  }
  const insecure = tls?.insecure ?? false;
  const context = tls?.proxyContext();
  const socket =
    proxy.type === 'http' ? plain : await handshake(attempt, plain, context, proxy.host, insecure, `${name}: `);
  // Without TLS the proxy reads our requests itself.
  if (tls !== null) await tunnelThrough(attempt, socket, proxy, name, printHostPort(host, port), userAgent);
  return socket;
}

/** What is within is nothing that the proxy reads, with or without TLS. */
async function dialTunnel(attempt: Attempt, destination: Destination, tunnel: Tunnel): Promise<Socket> {
  const { host, port, userAgent } = destination;
  const { to, name } = tunnel.access;
  const tls = await tunnel.tls();
  const plain = await dialSocket(attempt, to, name, destination);
  const socket =
    tls === null ? plain : await handshake(attempt, plain, tls.context, tls.serverName, false, `${name}: `);
  await tunnelThrough(attempt, socket, tunnel.access, name, printHostPort(host, port), userAgent);
  return socket;
}

/** RFC 9110 §9.3.6. */
async function tunnelThrough(
  attempt: Attempt,
  socket: Socket,
  proxy: Pick<Proxy, 'login'>,
  name: string,
  authority: string,
  userAgent: string,
): Promise<void> {
  const authorization = proxyAuthorization(proxy);
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    `User-Agent: ${userAgent}`,
    ...(authorization === null ? [] : [`Proxy-Authorization: ${authorization}`]),
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const head = await attempt.read(socket, 'connect', name, (bytes) => {
    const end = bytes.indexOf('\r\n\r\n');
    return end < 0 ? null : bytes.toString('latin1', 0, end);
  });
  const [, status, reason = ''] = /^HTTP\/1\.[01] (\d{3}) ?([^\r\n]*)/.exec(head) ?? [];
  if (status === undefined) throw attempt.error('connect', name, new Error('answered no HTTP'));
  if (!status.startsWith('2')) throw attempt.error('connect', name, new Error(`answered ${status} ${reason}`.trim()));
}

async function handshake(
  attempt: Attempt,
  socket: Socket,
  context: SecureContext | undefined,
  serverName: string,
  insecure: boolean,
  detail: string,
): Promise<TLSSocket> {
  const secure = connectTls({
    socket,
    ...(context === undefined ? {} : { secureContext: context }),
    ...serverIdentity(serverName),
    ...(insecure ? { rejectUnauthorized: false } : {}),
    ALPNProtocols: ['http/1.1'],
  });
  await attempt.step(secure, 'secureConnect', 'tls', `${detail}TLS`);
  return secure;
}
