import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { addressBytes, parseAddress } from '../../../base/ip.js';
import type { Proxy } from '../auth/proxy.js';
import type { Attempt } from './attempt.js';

const VERSION = 5;
const NO_LOGIN = 0;
const PASSWORD_LOGIN = 2;
const LOGIN_VERSION = 1;
const CONNECT = 1;
const ADDRESS_LENGTHS: Readonly<Record<number, number>> = { 1: 4, 4: 16 };
const DOMAIN = 3;

/** What a reply other than 0 means, RFC 1928 §6. */
const REPLIES = [
  'succeeded',
  'general failure',
  'connection not allowed by the ruleset',
  'network unreachable',
  'host unreachable',
  'connection refused',
  'time to live expired',
  'command not supported',
  'address type not supported',
];

/** Asks a SOCKS5 proxy (RFC 1928, login RFC 1929) to connect to a host, whose name it looks up itself. */
export async function socksConnect(
  attempt: Attempt,
  socket: Socket,
  { login }: Proxy,
  host: string,
  port: number,
): Promise<void> {
  const read = <T>(take: (bytes: Buffer) => T | null): Promise<T> =>
    attempt.read(socket, 'connect', 'SOCKS5 proxy', take);
  const fail = (detail: string): Error => attempt.error('connect', 'SOCKS5 proxy', new Error(detail));

  socket.write(Buffer.from(login === null ? [VERSION, 1, NO_LOGIN] : [VERSION, 2, NO_LOGIN, PASSWORD_LOGIN]));
  const [version, method] = await read((bytes) => exactly(bytes, 2));
  if (version !== VERSION) throw fail('answers in another protocol');
  if (method === PASSWORD_LOGIN && login !== null) {
    const username = lengthPrefixed(login.username);
    const password = lengthPrefixed(login.password);
    if (username === null || password === null) throw fail('user name and password must have 1 to 255 bytes');
    socket.write(Buffer.concat([Buffer.from([LOGIN_VERSION]), username, password]));
    const [, status] = await read((bytes) => exactly(bytes, 2));
    if (status !== 0) throw fail('user name and password were refused');
  } else if (method !== NO_LOGIN) {
    throw fail(login === null ? 'wants a user name and password' : 'takes no user name and password');
  }

  const address = encodeHost(host);
  if (address === null) throw fail(`host name of more than 255 bytes`);
  socket.write(Buffer.concat([Buffer.from([VERSION, CONNECT, 0]), address, Buffer.from([port >> 8, port & 0xff])]));
  const reply = await read(wholeReply);
  if (reply !== 0) throw fail(REPLIES[reply] ?? `answered ${reply}`);
}

/** @returns null while bytes are missing. */
function exactly(bytes: Buffer, length: number): Buffer | null {
  if (bytes.length > length) throw new Error('answers more than was requested');
  return bytes.length < length ? null : bytes;
}

/** The reply's code once the reply is there. A refusal may end after four bytes and has no use for the rest. */
function wholeReply(bytes: Buffer): number | null {
  const [, reply, , type, domainLength] = bytes;
  if (reply === undefined || type === undefined) return null;
  if (reply !== 0) return reply;
  const length = type === DOMAIN ? (domainLength === undefined ? null : domainLength + 1) : ADDRESS_LENGTHS[type];
  if (length === undefined) throw new Error(`answers with address type ${type}`);
  return length === null || exactly(bytes, 4 + length + 2) === null ? null : reply;
}

function encodeHost(host: string): Buffer | null {
  const address = isIP(host) === 0 ? null : parseAddress(host);
  if (address !== null) {
    const bytes = addressBytes(address);
    return Buffer.concat([Buffer.from([bytes.length === 4 ? 1 : 4]), bytes]);
  }
  const name = lengthPrefixed(host);
  return name === null ? null : Buffer.concat([Buffer.from([DOMAIN]), name]);
}

function lengthPrefixed(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'utf8');
  return bytes.length === 0 || bytes.length > 255 ? null : Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
