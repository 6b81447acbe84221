import { sign, type KeyObject } from 'node:crypto';
import { bits, objectIdentifier, sequence, set, text, type Der } from './der.js';

/** What certificates and requests for them have in common (RFC 5280, RFC 2986). */

const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';

/** The algorithm by which a key of an elliptic curve signs here: ECDSA with SHA-256. */
export const SIGNATURE_ALGORITHM: Der = sequence(objectIdentifier('1.2.840.10045.4.3.2'));

export function distinguishedName(commonName: string, organizations: readonly string[] = []): Der {
  const part = (type: string, value: string): Der => set(sequence(objectIdentifier(type), text(value)));
  return sequence(...organizations.map((each) => part(ORGANIZATION, each)), part(COMMON_NAME, commonName));
}

/** The content with its signature. @param key of an elliptic curve. */
export function signed(content: Der, key: KeyObject): Der {
  return sequence(content, SIGNATURE_ALGORITHM, bits(sign('sha256', content, key)));
}

export function pem(label: string, content: Der): string {
  const lines =
    Buffer.from(content)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
