import type { OutgoingHttpHeaders } from 'node:http';
import type { Impersonation } from './kubeconfig.js';

/** Characters a header's name may have, RFC 9110 §5.6.2, but for the percent sign, which escapes the others. */
const PLAIN = /[!#$&'*+\-.^_`|~0-9A-Za-z]/;

/** The headers that ask the API server to take a request for another user's (user impersonation). */
export function impersonationHeaders(as: Impersonation): OutgoingHttpHeaders {
  const { 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = as;
  const headers: OutgoingHttpHeaders = { 'Impersonate-User': headerValue(as.as) };
  if (uid !== '') headers['Impersonate-Uid'] = headerValue(uid);
  if (groups.length > 0) headers['Impersonate-Group'] = groups.map(headerValue);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[`Impersonate-Extra-${escapeName(key)}`] = values.map(headerValue);
  }
  return headers;
}

function escapeName(key: string): string {
  return [...Buffer.from(key, 'utf8')]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return PLAIN.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}

/** Node sends each character as one byte; the server reads UTF-8. */
function headerValue(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
