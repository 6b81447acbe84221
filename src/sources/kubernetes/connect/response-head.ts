import type { IncomingMessage } from 'node:http';
import type { ApiResponse } from '../connection.js';

/** What is known of an answer before its body comes. */
export function responseHead({ statusCode = 0, headers }: IncomingMessage): Omit<ApiResponse, 'body'> {
  const [contentType = ''] = (headers['content-type'] ?? '').split(';');
  return {
    status: statusCode,
    contentType: contentType.trim().toLowerCase(),
    retryAfterMs: retryAfter(headers['retry-after'] ?? ''),
  };
}

/** RFC 9110 §10.2.3. */
function retryAfter(text: string): number | null {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const time = text === '' ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : Math.max(0, time - Date.now());
}
