import type { Socket } from 'node:net';
import type { Clock } from '../base/clock.js';
import { spentTime } from '../base/spent-time.js';

/** So much is parsed before it is asked whether the connection still is there. */
const PIECE_BYTES = 1024;
/** So long one connection is parsed before others have their turn. */
const SLICE_MS = 2;
/** Bytes that may wait unparsed until a client may go on. */
const MOST_HELD_BYTES = 16 << 10;

/** Thrown by a listener of requests that has ended their connection: what was received after them is not parsed. */
export const CONNECTION_ENDED = new Error('the connection was ended');

export interface Pace {
  /** In how many milliseconds the client may go on; 0: now. */
  wait(): number;
  spent(ms: number): void;
  /** The client has to wait, or is closed. */
  refused(): void;
}

/**
 * Parses what a connection receives in small pieces, at a client's pace. Node's own way parses all that was read at once, up to 64 KiB, also for a connection that
 * was closed on the way: with pipelined requests that takes 0.1 s of the main thread. So the parser is taken off the connection, and called here.
 */
export class PacedReading {
  private cancelWait: (() => void) | null = null;

  private constructor(
    private readonly socket: Socket,
    private readonly parse: (this: Socket, piece: Buffer) => void,
    private readonly pace: Pace,
    private readonly clock: Clock,
  ) {}

  /** To be called when the HTTP server has taken the connection; where TLS carries HTTP, with what is inside of it. */
  static begin(socket: Socket, pace: Pace, clock: Clock): void {
    const [parse] = socket.listeners('data') as ((this: Socket, piece: Buffer) => void)[];
    // The encrypted side of TLS.
    if (parse === undefined) return;
    const reading = new PacedReading(socket, parse, pace, clock);
    socket.off('data', parse);
    // Node's parser reads from the system by itself until somebody else listens.
    socket.on('data', (chunk: Buffer) => {
      reading.receive(chunk);
    });
    socket.once('close', () => {
      reading.cancelWait?.();
    });
  }

  private receive(chunk: Buffer): void {
    const { socket, pace } = this;
    if (socket.destroyed) return;
    // Node resumes a connection whose answers are read again, also before its wait is over.
    const wait = this.cancelWait === null ? pace.wait() : Infinity;
    const rest = wait > 0 ? chunk : this.parseSlice(chunk);
    const isRefused = wait > 0 && wait < Infinity;
    if (isRefused) pace.refused();
    if (isRefused && chunk.length > MOST_HELD_BYTES) socket.destroy();
    else if (rest !== null) this.hold(rest, wait);
  }

  /** Returns what is left; null: nothing. */
  private parseSlice(chunk: Buffer): Buffer | null {
    const { socket, parse, pace } = this;
    const spent = spentTime();
    const end = performance.now() + SLICE_MS;
    let at = 0;
    try {
      // Node pauses a connection whose answers are not read.
      while (at < chunk.length && !socket.destroyed && !socket.isPaused() && performance.now() < end) {
        at += PIECE_BYTES;
        parse.call(socket, chunk.subarray(at - PIECE_BYTES, at));
      }
    } catch (error) {
      if (error !== CONNECTION_ENDED) throw error;
      at = chunk.length;
    }
    pace.spent(spent());
    return at < chunk.length && !socket.destroyed ? chunk.subarray(at) : null;
  }

  /** Given back to the stream, what was received comes before its end. */
  private hold(rest: Buffer, ms: number): void {
    const { socket, clock } = this;
    const isPaused = socket.isPaused();
    socket.pause();
    socket.unshift(rest);
    if (isPaused) return;
    this.cancelWait ??= clock.callAt(clock.now() + ms, () => {
      this.cancelWait = null;
      socket.resume();
    });
  }
}
