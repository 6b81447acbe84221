import { X509Certificate } from 'node:crypto';
import { messageOf } from './error-message.js';

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** Every certificate of a PEM text; one that nothing ends is none. */
export function certificateBlocks(pem: string): readonly string[] {
  const blocks: string[] = [];
  for (let begin = pem.indexOf(BEGIN); begin >= 0;) {
    const end = pem.indexOf(END, begin);
    if (end < 0) break;
    blocks.push(pem.slice(begin, end + END.length));
    begin = pem.indexOf(BEGIN, end);
  }
  return blocks;
}

/** OpenSSL passes over what it cannot read, which would leave an empty list of authorities. */
export function checkCertificates(pem: string, field: string): void {
  const blocks = certificateBlocks(pem);
  if (blocks.length === 0) throw new Error(`${field}: holds no certificate in PEM form`);
  for (const [index, block] of blocks.entries()) {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw new Error(`${field}: certificate ${index + 1} of ${blocks.length} is damaged: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

/** When a certificate, the first of the text, ends; in milliseconds since the epoch. */
export function endOfValidity(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo);
}

/** As in Go, an intermediate authority that is trusted needs no root above it. */
export const TRUST = { allowPartialTrustChain: true } as const;
