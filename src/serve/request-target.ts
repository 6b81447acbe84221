import type { IncomingMessage } from 'node:http';

/** `http://node:10256/healthz` as the target of a request: its host, and what follows. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)/i;

/**
 * Takes the origin off a target in absolute form, in which clients of proxies send it. Every server has to accept it, and its host replaces that of the
 * header (RFC 9112, section 3.2.2).
 */
export function toOriginForm(request: Pick<IncomingMessage, 'url' | 'headers'>): void {
  const { url = '' } = request;
  const [origin = '', host] = ABSOLUTE_FORM.exec(url) ?? [];
  if (host === undefined) return;
  const rest = url.slice(origin.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = host;
}
