import type { RequestListener, Server, ServerOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Clock } from '../../base/clock.js';
import { messageOf } from '../../base/error-message.js';
import type { SecuredConfig } from '../../config/secured.js';
import type { Door } from '../door.js';
import { Certificates, type CertificatesOptions } from './certificates.js';
import { TokenBucket } from './token-bucket.js';

/** How often files are looked at. */
const CHECK_MS = 5000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** New connections, each of which costs about a millisecond of the thread that also follows the cluster. */
const HANDSHAKES_PER_SECOND = 50;
const HANDSHAKES_AT_ONCE = 200;

export interface DoorParts extends Omit<CertificatesOptions, 'config'> {
  readonly config: SecuredConfig;
  readonly clock: Clock;
  /** Only tests have another than 10 s. */
  readonly handshakeTimeoutMs?: number;
}

/** Opens what the flags ask for; why that is not possible when it is not. */
export async function openDoor(parts: DoorParts): Promise<Door | { readonly problem: string }> {
  const certificates = new Certificates({ ...parts, config: parts.config.tls });
  try {
    await certificates.open();
  } catch (error) {
    return { problem: messageOf(error) };
  }
  return new SecuredDoor(certificates, parts);
}

/** Speaks TLS, and follows the files that say how. */
class SecuredDoor implements Door {
  private readonly servers = new Set<ReturnType<typeof createServer>>();
  private readonly handshakes: TokenBucket;
  private cancelCheck: () => void = () => undefined;
  private closed = false;

  constructor(
    private readonly certificates: Certificates,
    private readonly parts: DoorParts,
  ) {
    const { clock } = parts;
    this.handshakes = new TokenBucket(HANDSHAKES_PER_SECOND, HANDSHAKES_AT_ONCE, () => clock.now());
    this.checkLater();
  }

  createServer(options: ServerOptions): Server {
    const { certificates } = this;
    const server = createServer({
      ...options,
      ...certificates.forOthers,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: this.parts.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
      SNICallback: (name, done) => {
        done(null, certificates.forName(name) ?? undefined);
      },
    });
    server.on('connection', (socket) => {
      if (!this.handshakes.take()) socket.destroy();
    });
    this.servers.add(server);
    server.on('close', () => this.servers.delete(server));
    return server;
  }

  admit(...[request, response, pages]: Parameters<Door['admit']>): ReturnType<RequestListener> {
    pages(request, response);
  }

  close(): void {
    this.closed = true;
    this.cancelCheck();
  }

  private checkLater(): void {
    const { clock } = this.parts;
    this.cancelCheck = clock.callAt(clock.now() + CHECK_MS, () => void this.check());
  }

  private async check(): Promise<void> {
    const changed = await this.certificates.check();
    if (this.closed) return;
    if (changed) for (const server of this.servers) server.setSecureContext(this.certificates.forOthers);
    this.checkLater();
  }
}
