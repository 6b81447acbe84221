import type { Readable } from 'node:stream';

/**
 * Makes a flowing stream hand a chunk to the listeners of `data` as soon as it comes, if nothing waits before the chunk. `Readable` does the same,
 * but then checks in a tick of its own whether to read more. A watch's events come each alone in a turn of the event loop, and this check costs more than
 * decoding them. For streams of bytes that are pushed without being asked for, as those of sockets and of HTTP answers are. A stream that is paused, or has
 * no such listeners, works as always.
 */
export function deliverAtOnce<T extends Readable>(stream: T): T {
  const push = stream.push.bind(stream);
  stream.push = (chunk: unknown, encoding) => {
    const waits = stream.readableFlowing !== true || stream.readableLength > 0 || stream.listenerCount('data') === 0;
    if (waits || !(chunk instanceof Buffer)) return push(chunk, encoding);
    stream.emit('data', chunk);
    // Even when that paused it: the next chunk waits, and stops the pusher in the way that `Readable` can undo.
    return true;
  };
  return stream;
}
