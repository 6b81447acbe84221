/**
 * All of a stream's bytes as text.
 *
 * @param tooLong makes the error for more than `maxBytes`. Reading stops there.
 */
export async function readTextWithin(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: () => Error,
): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
