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
  stdout: TextStream = process.stdout,
  stderr: TextStream = process.stderr,
): LogOutput {
  const now = (): number => performance.timeOrigin + performance.now();
  const writeError = writerTo(stderr);
  if (!splitStream) return { write: writeError, now };
  const writeMessage =
    infoBufferSize > 0 ? buffered(writerTo(stdout), infoBufferSize, flushFrequency) : writerTo(stdout);
  return {
    write: (line, isError) => {
      (isError ? writeError : writeMessage)(line);
    },
    now,
  };
}

type Write = (text: string) => void;

function writerTo(stream: TextStream): Write {
  stream.on('error', () => undefined);
  return (text) => {
    stream.write(text);
  };
}

/** Gathers text until it has so many bytes or the first of it has waited so long; what is left is written when the process exits. */
function buffered(write: Write, bytes: number, milliseconds: number): Write {
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
    write(text);
  };
  return (text) => {
    gathered += text;
    size += Buffer.byteLength(text);
    if (size >= bytes) {
      flush();
    } else if (timer === null) {
      timer = setTimeout(flush, Math.min(milliseconds, MAX_TIMEOUT_MS)).unref();
      process.once('exit', flush);
    }
  };
}

/** Longest delay setTimeout takes; it fires at once for anything longer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
