import { MAX_TIMEOUT_MS } from '../base/timeout.js';
import type { LoggingConfig } from '../config/config.js';
import type { LogOutput } from './log.js';

/** A stream that takes text, as process.stdout does. */
export interface TextStream {
  write(text: string): unknown;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * Standard error, or with split streams standard output for all but errors. A reader that has gone away costs the lines, never the process.
 */
export function logStreams(
  { splitStream, infoBufferSize, flushFrequency }: LoggingConfig,
  stdout?: TextStream,
  stderr: TextStream = process.stderr,
): LogOutput {
  const now = (): number => performance.timeOrigin + performance.now();
  const writeError = writerTo(stderr);
  const unbuffered = (write: Write): Buffered => ({ write, flush: () => undefined });
  if (!splitStream) return { ...unbuffered(writeError), now };
  // Node makes the stream when it is first read, which takes a hundredth of a start.
  const writeMessage = writerTo(stdout ?? process.stdout);
  const messages =
    infoBufferSize > 0 ? buffered(writeMessage, infoBufferSize, flushFrequency) : unbuffered(writeMessage);
  return {
    write: (line, isError) => {
      (isError ? writeError : messages.write)(line);
    },
    now,
    flush: messages.flush,
  };
}

type Write = (text: string) => void;

interface Buffered {
  readonly write: Write;
  readonly flush: () => void;
}

/** Those whose errors are heard already. */
const received = new WeakSet<TextStream>();

function writerTo(stream: TextStream): Write {
  if (!received.has(stream)) stream.on('error', () => undefined);
  received.add(stream);
  return (text) => {
    stream.write(text);
  };
}

/** Gathers text until it has so many bytes or the first of it has waited so long; what is left is written when the process exits. */
function buffered(write: Write, bytes: number, milliseconds: number): Buffered {
  let gathered = '';
  let size = 0;
  let timer: NodeJS.Timeout | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    process.off('exit', flush);
    const text = gathered;
    gathered = '';
    size = 0;
    if (text !== '') write(text);
  };
  const gather = (text: string): void => {
    gathered += text;
    size += Buffer.byteLength(text);
    if (size >= bytes) {
      flush();
    } else if (timer === null) {
      timer = setTimeout(flush, Math.min(milliseconds, MAX_TIMEOUT_MS)).unref();
      process.once('exit', flush);
    }
  };
  return { write: gather, flush };
}
