import { isIP } from 'node:net';
import type { PeerCertificate } from 'node:tls';
import { parseAddress } from './ip.js';

/** What a TLS client needs to reach the intended server and no other. */
interface ServerIdentity {
  /** Sent in the handshake; empty for an address, which is no server name (RFC 6066 §3). */
  readonly servername: string;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
  /** Written out, as an environment variable may turn Node's own default off. */
  readonly rejectUnauthorized: boolean;
}

/**
 * Options for `tls.connect` and `https.request`. The name counts, whatever the request's Host header is.
 *
 * @param hostname a name or an address; IPv6 may stand in brackets, as in a URL.
 */
export function serverIdentity(hostname: string): ServerIdentity {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return {
    servername: isIP(host) === 0 ? withoutDot(host) : '',
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
    rejectUnauthorized: true,
  };
}

const SHOWN_NAMES = 5;

/**
 * Whether a certificate is for this host, by the rules of Go's crypto/x509, which kube-proxy obeys: a name by its DNS names, an address by its IP addresses,
 * the common name never. Node's own check takes the common name where nothing else is there, and wildcards within a label.
 */
export function checkServerIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const { names, addresses } = alternativeNames(certificate.subjectaltname ?? '');
  const address = isIP(host) === 0 ? null : parseAddress(host);
  const matches =
    address === null
      ? names.some((name) => matchesName(name, host))
      : addresses.some((each) => parseAddress(each) === address);
  if (matches) return undefined;
  const what = address === null ? 'DNS name' : 'IP address';
  const had = address === null ? names : addresses;
  if (had.length > 0) {
    const more = had.length > SHOWN_NAMES ? ` and ${had.length - SHOWN_NAMES} more` : '';
    return new Error(`the certificate is for ${had.slice(0, SHOWN_NAMES).join(', ')}${more}, not for ${host}`);
  }
  return new Error(
    `the certificate has no subject alternative name of type ${what}, so it is not for ${host}; a common name does not count`,
  );
}

interface AlternativeNames {
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

/** Reads Node's text of the extension: `DNS:a.example, IP Address:192.0.2.1`; a value with special characters is a JSON string. */
function alternativeNames(text: string): AlternativeNames {
  const names: string[] = [];
  const addresses: string[] = [];
  for (let at = 0; at < text.length;) {
    const colon = text.indexOf(':', at);
    if (colon < 0) break;
    const type = text.slice(at, colon);
    const end = endOfValue(text, colon + 1);
    const value = readValue(text.slice(colon + 1, end));
    if (type === 'DNS') names.push(value);
    if (type === 'IP Address') addresses.push(value);
    at = end + ', '.length;
  }
  return { names, addresses };
}

function endOfValue(text: string, start: number): number {
  if (text[start] === '"') {
    for (let at = start + 1; at < text.length; at++) {
      if (text[at] === '\\') at++;
      else if (text[at] === '"') return at + 1;
    }
  }
  const end = text.indexOf(', ', start);
  return end < 0 ? text.length : end;
}

function readValue(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    return '';
  }
}

/** A wildcard is a whole label, the first, and stands for one label. Names that are none must be the same to the letter. */
function matchesName(pattern: string, host: string): boolean {
  const name = inLowerCase(withoutDot(host));
  const wanted = inLowerCase(pattern);
  const labels = name.split('.');
  const wantedLabels = wanted.split('.');
  if (!labels.every(isLabel)) return name !== '' && wanted === name;
  const [first = '', ...rest] = wantedLabels;
  if (wantedLabels.length !== labels.length || !rest.every(isLabel) || !(first === '*' || isLabel(first))) return false;
  if (first === '*') return rest.length > 0 && rest.every((label, index) => label === labels[index + 1]);
  return wanted === name;
}

function isLabel(text: string): boolean {
  return /^[a-z0-9_][a-z0-9_-]*$/.test(text);
}

/** Lowers ASCII only: other letters have lower cases that belong to other names. */
function inLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function withoutDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
