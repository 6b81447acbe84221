import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { errorCode } from '../../../src/base/error-message.js';
import { answerText } from '../../../src/serve/http-endpoint.js';

/** A file of the page. */
export interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly etag: string;
  /** Its name has a hash of its content. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};

/** Files by name; those of other types are left out. Without the folder there are none. */
export async function readAssets(folder: string): Promise<ReadonlyMap<string, Asset>> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const assets = await Promise.all(
    names.map(async (name): Promise<readonly (readonly [string, Asset])[]> => {
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const body = await readFile(join(folder, name));
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
      return [[name, { body, type, etag, isImmutable: /[-.][0-9A-Za-z]{8,}\.\w+$/.test(name) }]];
    }),
  );
  return new Map(assets.flat());
}

/** Everything comes from here, nothing is written into the page itself, no text becomes markup, and no other page may frame it. */
export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/** @param name below the page's folder; empty: the page itself. */
export function answerAsset(
  assets: ReadonlyMap<string, Asset>,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const asset = assets.get(name || 'index.html');
  if (asset === undefined) {
    answerText(response, 404, `there is no ${name}\n`);
    return;
  }
  const { body, type, etag, isImmutable } = asset;
  response.setHeader('ETag', etag);
  response.setHeader('Cache-Control', isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache');
  if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
  else response.writeHead(200, { 'Content-Type': type, 'Content-Length': body.length }).end(body);
}
