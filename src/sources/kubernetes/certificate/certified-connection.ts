import { unlessAborted } from '../connect/attempt.js';
import type { ApiAnswer, ApiConnection, ApiQuery, ApiResponse, GetOptions, PostOptions } from '../connection.js';

/** A connection that may not be there yet, as its certificate is waited for: so do its requests. */
export class CertifiedConnection implements ApiConnection {
  /** @param ending ends what looks after the certificate. */
  constructor(
    private readonly connection: Promise<ApiConnection>,
    private readonly ending: AbortController,
  ) {
    // The callers receive the error.
    connection.catch(() => undefined);
  }

  async get(path: string, query: ApiQuery, options: GetOptions): Promise<ApiResponse> {
    return (await unlessAborted(this.connection, options.signal)).get(path, query, options);
  }

  async post(path: string, body: string, options: PostOptions): Promise<ApiAnswer> {
    return (await unlessAborted(this.connection, options.signal)).post(path, body, options);
  }

  close(): void {
    this.ending.abort();
    this.connection.then(
      (connection) => {
        connection.close();
      },
      () => undefined,
    );
  }
}
