import { isUtf8 } from 'node:buffer';
import { closeSync, createReadStream, openSync, readSync } from 'node:fs';

/**
 * A file's bytes.
 *
 * @throws Error of the file system, or one about a file larger than `maxBytes`, of which no more is read.
 */
export function readFileWithin(path: string, maxBytes: number): Promise<Buffer> {
  return readStreamWithin(createReadStream(path, { end: maxBytes }), maxBytes);
}

/** As {@link readFileWithin}, from whatever is read. */
export async function readStreamWithin(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) break;
  }
  return checkSize(Buffer.concat(chunks), maxBytes);
}

/** As {@link readFileWithin}, for small files that are waited for. */
export function readFileWithinSync(path: string, maxBytes: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let length = 0; length <= maxBytes;) {
      const chunk = Buffer.allocUnsafe(Math.min(maxBytes + 1 - length, CHUNK_BYTES));
      const read = readSync(file, chunk);
      if (read === 0) break;
      chunks.push(chunk.subarray(0, read));
      length += read;
    }
    return checkSize(Buffer.concat(chunks), maxBytes);
  } finally {
    closeSync(file);
  }
}

/**
 * A small file's text.
 *
 * @throws as {@link readFileWithin}, and when the text is not UTF-8.
 */
export function readTextFileSync(path: string, maxBytes: number): string {
  return textOf(readFileWithinSync(path, maxBytes));
}

/** @throws Error where they are no UTF-8. */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Error('is no UTF-8');
  return bytes.toString('utf8');
}

const CHUNK_BYTES = 1 << 16;

function checkSize(bytes: Buffer, maxBytes: number): Buffer {
  if (bytes.length > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`);
  return bytes;
}

/** Certificates and keys; what a system trusts is a twentieth of it. */
export const MAX_PEM_BYTES = 4 << 20;
/** Tokens and headers. */
export const MAX_SECRET_BYTES = 1 << 20;
