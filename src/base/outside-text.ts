const ELLIPSIS = '…';
const ELLIPSIS_BYTES = 3;

/**
 * Text of others, as much of it as may be remembered, logged or sent on: at most `maxBytes` bytes of UTF-8, whole characters, the last an ellipsis where
 * something is missing. A copy, so that a piece of a large text does not keep all of it in memory.
 *
 * @param maxBytes at least 3.
 */
export function cutText(text: string, maxBytes: number): string {
  if (text === '') return text;
  // A unit of UTF-16 is a byte or more.
  const encoded = Buffer.from(text.slice(0, maxBytes + 1));
  if (encoded.length <= maxBytes) return encoded.toString();
  let end = maxBytes - ELLIPSIS_BYTES;
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${encoded.toString('utf8', 0, end)}${ELLIPSIS}`;
}

/** The limit for one message about text from outside, with all its other parts. */
export const MAX_MESSAGE_BYTES = 1024;

export function cutMessage(text: string): string {
  return cutText(text, MAX_MESSAGE_BYTES);
}
