import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { readTextWithin } from '../../base/read-text.js';
import { serverIdentity } from '../../base/server-identity.js';
import type { RequestHeaders, UrlAccess } from './url-access.js';

export type HttpAnswer =
  | { readonly type: 'body'; readonly text: string; readonly etag: string | null; readonly lastModified: string | null }
  | { readonly type: 'unchanged' };

export const MAX_BODY_BYTES = 64 << 20;

/**
 * Gets a URL. Redirects are not followed, as the headers may carry a secret meant for this host alone.
 *
 * @throws Error with a readable message for anything but a whole body with status 200, or status 304.
 */
export function httpGet(url: URL, { headers, secureContext }: UrlAccess, signal: AbortSignal): Promise<HttpAnswer> {
  const [request, identity] =
    url.protocol === 'https:' ? [httpsRequest, serverIdentity(url.hostname)] : [httpRequest, {}];
  const trust = secureContext === null ? {} : { secureContext };
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, signal, headers: merge(headers), ...identity, ...trust }, (response) => {
      readAnswer(response).then(resolve, (error: unknown) => {
        sent.destroy();
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
    sent.on('error', reject);
    // Without a listener the request would report nothing any more, not even that it was aborted.
    sent.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('answered 101, which was not requested'));
    });
    sent.end();
  });
}

/** A header given several times is sent several times. */
function merge(headers: RequestHeaders): Record<string, string[]> {
  const merged = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    merged.set(key, [...(merged.get(key) ?? []), value]);
  }
  return Object.fromEntries(merged);
}

async function readAnswer(response: IncomingMessage): Promise<HttpAnswer> {
  const { statusCode = 0, statusMessage = '', headers } = response;
  if (statusCode === 304) {
    response.resume();
    return { type: 'unchanged' };
  }
  if (statusCode !== 200) {
    const target = headers.location === undefined ? '' : `: redirects are not followed, name the target itself`;
    throw new Error(`answered ${statusCode} ${statusMessage}${target}`);
  }
  const coding = headers['content-encoding'] ?? 'identity';
  if (coding !== 'identity') throw new Error(`answered in content coding ${coding}, which was not requested`);
  const text = await readTextWithin(
    response,
    MAX_BODY_BYTES,
    () => new Error(`answered with more than ${MAX_BODY_BYTES} bytes`),
  );
  return { type: 'body', text, etag: headers.etag ?? null, lastModified: headers['last-modified'] ?? null };
}
