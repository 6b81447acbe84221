import type { Socket } from 'node:net';
import { ApiError, type ApiErrorCode } from '../connection.js';

/** One attempt to get a connection, of several steps: a limit in time and an abort that end whichever step is under way. */
export class Attempt {
  private socket: Socket | null = null;
  private failure: Error | null = null;
  private readonly timer: NodeJS.Timeout;
  private readonly onAbort = (): void => {
    this.fail(abortReason(this.signal));
  };

  constructor(
    readonly target: string,
    private readonly signal: AbortSignal,
    timeoutMs: number,
  ) {
    this.timer = setTimeout(() => {
      this.fail(new ApiError('connect', `cannot connect to ${target}: no connection within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    if (signal.aborted) this.onAbort();
    else signal.addEventListener('abort', this.onAbort, { once: true });
  }

  /** Waits until a step makes the socket ready. Errors of the socket are `code`; `detail` names the step. */
  async step(socket: Socket, ready: 'connect' | 'secureConnect', code: ApiErrorCode, detail: string): Promise<void> {
    await this.during(socket, code, detail, (resolve) => {
      socket.once(ready, resolve);
      return () => socket.off(ready, resolve);
    });
  }

  /** Reads from a socket until `take` makes something of all that came; what `take` throws is the failure. */
  async read<T>(socket: Socket, code: ApiErrorCode, detail: string, take: (bytes: Buffer) => T | null): Promise<T> {
    return this.during<T>(socket, code, detail, (resolve, reject) => {
      let bytes = Buffer.alloc(0);
      const readAll = (): void => {
        for (let chunk: unknown = socket.read(); chunk instanceof Buffer; chunk = socket.read()) {
          bytes = Buffer.concat([bytes, chunk]);
          if (bytes.length > MAX_ANSWER_BYTES) throw new Error(`answer longer than ${MAX_ANSWER_BYTES} bytes`);
        }
        const taken = take(bytes);
        if (taken !== null) resolve(taken);
      };
      const onReadable = (): void => {
        try {
          readAll();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      socket.on('readable', onReadable);
      onReadable();
      return () => socket.off('readable', onReadable);
    });
  }

  /** What goes wrong, in the words and with the code of this attempt. */
  error(code: ApiErrorCode, detail: string, cause: unknown): Error {
    if (this.failure !== null) return this.failure;
    return new ApiError(code, `cannot connect to ${this.target}: ${detail}: ${describe(cause)}`, { cause });
  }

  /** Ends the attempt when all steps are done, or one has failed. */
  end(succeeded: boolean): void {
    clearTimeout(this.timer);
    this.signal.removeEventListener('abort', this.onAbort);
    if (!succeeded) this.socket?.destroy();
  }

  private fail(reason: Error): void {
    this.failure ??= reason;
    this.socket?.destroy(reason);
  }

  private async during<T>(
    socket: Socket,
    code: ApiErrorCode,
    detail: string,
    start: (resolve: (value: T) => void, reject: (error: Error) => void) => () => void,
  ): Promise<T> {
    this.socket = socket;
    if (this.failure !== null) {
      socket.destroy();
      throw this.failure;
    }
    // Stays: a socket that fails between two steps must not bring the process down.
    socket.on('error', () => undefined);
    let stop = (): void => undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        const onClose = (): void => {
          reject(new Error('the connection was closed'));
        };
        socket.on('error', reject).on('close', onClose);
        const stopStep = start(resolve, reject);
        stop = () => {
          stopStep();
          socket.off('error', reject).off('close', onClose);
        };
      });
    } catch (error) {
      throw this.error(code, detail, error);
    } finally {
      stop();
    }
  }
}

const MAX_ANSWER_BYTES = 16 << 10;

/** The reason of an aborted signal, as an error. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error(`aborted: ${String(reason)}`);
}

/** The promise's outcome, or at once the signal's reason; the work itself goes on for others that wait for it. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(abortReason(signal));
    };
    const done = (): void => {
      signal.removeEventListener('abort', abort);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(done);
  });
}

/** Several addresses tried make one error without a message of its own. */
export function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return [...new Set(error.errors.map((one: unknown) => describe(one)))].join(', ');
  }
  if (!(error instanceof Error)) return String(error);
  return error.message === '' ? error.name : error.message;
}
