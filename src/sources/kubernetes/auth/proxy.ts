import { isIP } from 'node:net';
import { isLoopback, parseAddress, parsePrefix, prefixContains } from '../../../base/ip.js';

/** A proxy on the way to the API server. */
export interface Proxy {
  readonly type: 'http' | 'https' | 'socks5';
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly login: { readonly username: string; readonly password: string } | null;
}

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;
const SCHEMES: Readonly<Record<string, Proxy['type']>> = {
  'http:': 'http',
  'https:': 'https',
  'socks5:': 'socks5',
  'socks5h:': 'socks5',
};

/** Reads a proxy's URL. Answers what is wrong with it, without the URL, as that may hold a password. */
export function parseProxyUrl(text: string): Proxy | string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const type = url === null ? undefined : SCHEMES[url.protocol];
  if (url === null || type === undefined || url.hostname === '') {
    return 'must be a URL http://…, https://… or socks5://…';
  }
  const login = readLogin(url);
  if (login === undefined) return 'user name or password is not percent-encoded UTF-8';
  const port = url.port === '' ? DEFAULT_PORTS[type] : Number(url.port);
  return { type, host: unbracketed(url.hostname), port, login };
}

function readLogin({ username, password }: URL): Proxy['login'] | undefined {
  if (username === '' && password === '') return null;
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}

function unbracketed(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that the environment names for a URL, by the rules of Go's net/http: `HTTPS_PROXY` or `HTTP_PROXY` by the URL's scheme, either
 * case, except what `NO_PROXY` names; never for this machine itself. Answers what is wrong with a value as text.
 */
export function environmentProxy(url: URL, env: Environment): Proxy | string | null {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = valueOf(env, name);
  if (text === '' || bypasses(url, valueOf(env, 'NO_PROXY'))) return null;
  const proxy = parseProxyUrl(text.includes('://') ? text : `http://${text}`);
  return typeof proxy === 'string' ? `environment variable ${name}: ${proxy}` : proxy;
}

function valueOf(env: Environment, name: string): string {
  const upper = env[name] ?? '';
  return upper !== '' ? upper : (env[name.toLowerCase()] ?? '');
}

function bypasses(url: URL, noProxy: string): boolean {
  const host = unbracketed(url.hostname).toLowerCase();
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const address = parseAddress(host);
  if (host === 'localhost' || (address !== null && isLoopback(address))) return true;
  return noProxy.split(',').some((entry) => matches(entry.trim().toLowerCase(), host, port));
}

/** `*`, an address, a prefix, or a domain (with a leading dot its subdomains only), each but `*` and a prefix with an optional port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  const address = parseAddress(host);
  const prefix = entry.includes('/') ? parsePrefix(entry) : null;
  if (prefix !== null) return address !== null && prefixContains(prefix, address);
  const { name, onlyPort } = splitPort(entry);
  if (onlyPort !== null && onlyPort !== port) return false;
  if (isIP(name) !== 0) return address !== null && parseAddress(name) === address;
  const domain = name.startsWith('*.') ? name.slice(1) : name;
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}

function splitPort(entry: string): { readonly name: string; readonly onlyPort: string | null } {
  if (isIP(entry) !== 0) return { name: entry, onlyPort: null };
  const match = /^(.*?)(?::(\d+))?$/.exec(entry);
  return { name: unbracketed(match?.[1] ?? entry), onlyPort: match?.[2] ?? null };
}
