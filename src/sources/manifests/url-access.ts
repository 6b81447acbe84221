import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { MAX_PEM_BYTES, MAX_SECRET_BYTES, readFileWithinSync } from '../../base/bounded-file.js';
import { messageOf } from '../../base/error-message.js';
import { HEADER_FORM, parseHeaderFile } from '../../base/request-header.js';
import type { UrlSource } from '../../config/config.js';

/** Name and value, in the order given. */
export type RequestHeaders = readonly (readonly [name: string, value: string])[];

/** What a URL is asked with. */
export interface UrlAccess {
  readonly headers: RequestHeaders;
  /** Null: what the system trusts, and no client certificate. */
  readonly secureContext: SecureContext | null;
}

/**
 * Reads the files that belong to a URL, at each request, as those who issue credentials replace them.
 *
 * @throws Error naming the file, and the line where there is one, but nothing that it holds.
 */
export function readAccess(source: UrlSource): UrlAccess {
  const { origin } = new URL(source.url);
  const given = source.headers.map(({ name, value }) => [name, value] as const);
  const ofFiles = source.headerFiles.flatMap((file) => headersFor(origin, source.isOnlyOrigin, file));
  return { headers: [...given, ...ofFiles], secureContext: secureContextOf(source) };
}

function headersFor(origin: string, isOnlyOrigin: boolean, file: string): RequestHeaders {
  return parseHeaderFile(readText(file, MAX_SECRET_BYTES)).flatMap(({ line, header }) => {
    if (header === null) throw new Error(`${file}: line ${line}: must be ${HEADER_FORM}`);
    if (header.origin === null && !isOnlyOrigin)
      throw new Error(`${file}: line ${line}: must begin with the origin it is for, as there are several`);
    return header.origin === null || header.origin === origin ? [[header.name, header.value] as const] : [];
  });
}

function secureContextOf({ authorityFile, certificateFile, keyFile }: UrlSource): SecureContext | null {
  if (authorityFile === null && certificateFile === null) return null;
  const ca = authorityFile === null ? {} : { ca: readAuthority(authorityFile) };
  if (certificateFile === null || keyFile === null) return createSecureContext(ca);
  const pair = { cert: readText(certificateFile), key: readText(keyFile) };
  try {
    return createSecureContext({ ...ca, ...pair });
  } catch (error) {
    throw new Error(`${certificateFile}, ${keyFile}: cannot be used: ${messageOf(error)}`);
  }
}

/** Node takes text without any certificate for an authority that trusts no server. */
function readAuthority(file: string): string {
  const text = readText(file);
  try {
    new X509Certificate(text);
    return text;
  } catch {
    throw new Error(`${file}: holds no certificate`);
  }
}

function readText(file: string, maxBytes = MAX_PEM_BYTES): string {
  try {
    return readFileWithinSync(file, maxBytes).toString('utf8');
  } catch (error) {
    throw new Error(`${file}: cannot be read: ${messageOf(error)}`);
  }
}
