import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { element, integer, sequence } from '../../../base/der.js';
import { distinguishedName, pem, signed } from '../../../base/x509.js';

/** The user that a certificate is for. */
export interface Subject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

/** Signs for node agents alone, and only subjects that name the node. */
const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

/** The user to whom the built-in role system:node-proxier is bound, or where a signer signs no other the node's. */
export function subjectFor(signerName: string, nodeName: string): Subject {
  return signerName === KUBELET_SIGNER
    ? { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }
    : { commonName: 'system:kube-proxy', organizations: [] };
}

/** A request in the form of PKCS #10 (RFC 2986), as PEM text. @param key of P-256. */
export function signingRequest(key: KeyObject, { commonName, organizations }: Subject): string {
  const [version, noAttributes] = [integer(Buffer.from([0])), element(0xa0)];
  const content = sequence(version, distinguishedName(commonName, organizations), publicPart(key), noAttributes);
  return pem('CERTIFICATE REQUEST', signed(content, key));
}

/** The same for the same key, signer and subject, so that a request is found again whose maker has ended. */
export function requestName(key: KeyObject, signerName: string, { commonName, organizations }: Subject): string {
  const hash = createHash('sha256').update(publicPart(key));
  for (const text of [signerName, commonName, ...organizations]) hash.update(`\0${text}`);
  return `node-proxy-csr-${hash.digest('hex').slice(0, 40)}`;
}

function publicPart(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}
