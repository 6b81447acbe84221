import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.js';
import { messageOf } from '../../base/error-message.js';
import type { SecuredConfig } from '../../config/secured.js';
import type { Door } from '../door.js';
import { FileText } from '../../base/file-text.js';
import { Authentication, type FileAuthentication } from './authentication.js';
import { readAuthenticationFile } from './authentication-file.js';
import { AccessReviews, ALWAYS_ALLOW } from './authorization.js';
import { Certificates, type CertificatesOptions } from './certificates.js';
import { Followed } from './followed.js';
import { Gate } from './gate.js';
import { JwtAuthenticators } from './jwt.js';
import { Reviews, type ReviewsOptions } from './reviews.js';
import { TokenBucket } from './token-bucket.js';
import { TokenReviews } from './token-reviews.js';

/** How often files are looked at. */
const CHECK_MS = 5000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** New connections, each of which costs about a millisecond of the thread that also follows the cluster. */
const HANDSHAKES_PER_SECOND = 50;
const HANDSHAKES_AT_ONCE = 200;

export interface DoorParts extends Omit<CertificatesOptions, 'config' | 'clientCaFile'>, ReviewsOptions {
  readonly config: SecuredConfig;
  readonly clock: Clock;
  /** Only tests have another than 10 s. */
  readonly handshakeTimeoutMs?: number;
}

/** Opens what the flags ask for; why that is not possible when it is not. */
export async function openDoor(parts: DoorParts): Promise<Door | { readonly problem: string }> {
  const { tls, authentication } = parts.config;
  const certificates = new Certificates({ ...parts, config: tls, clientCaFile: authentication.clientCaFile });
  const file = authentication.file === null ? null : followAuthentication(authentication.file, parts);
  try {
    await certificates.open();
    await file?.open();
  } catch (error) {
    return { problem: messageOf(error) };
  }
  return new SecuredDoor(certificates, makeGate(parts, file), file, parts);
}

function followAuthentication(path: string, parts: DoorParts): Followed<FileAuthentication> {
  const { config, log, observer } = parts;
  const file = new FileText(path);
  return new Followed({
    flag: '--authentication-config',
    // Text of others is UTF-8, of which the reader has kept every byte.
    read: async () => [Buffer.from(await file.read(), 'latin1').toString('utf8')],
    make: ([text = '']) => {
      const { jwt, anonymous } = readAuthenticationFile(text);
      if (anonymous !== null && config.authentication.anonymous !== null)
        throw new Error('AuthenticationConfiguration.anonymous: Forbidden: --anonymous-auth is given');
      return { tokens: new JwtAuthenticators({ ...parts, settings: jwt }), anonymous };
    },
    log,
    observer,
  });
}

function makeGate(parts: DoorParts, file: Followed<FileAuthentication> | null): Gate {
  const { config, clock, now, log, observer } = parts;
  const { authentication, authorization } = config;
  const reviews = new Reviews(parts);
  const ttl = authentication.tokenTtl;
  return new Gate({
    authentication: new Authentication({
      config: authentication,
      file,
      tokens: ttl === null ? null : new TokenReviews({ reviews, ttl, clock, now }),
      now,
    }),
    authorizer:
      authorization.mode === 'AlwaysAllow'
        ? ALWAYS_ALLOW
        : new AccessReviews({ reviews, config: authorization, clock }),
    log,
    observer,
  });
}

/** Speaks TLS, follows the files that say how, and lets through whom the gate does. */
class SecuredDoor implements Door {
  private readonly servers = new Set<ReturnType<typeof createServer>>();
  private readonly connections = new Set<TLSSocket>();
  private readonly handshakes: TokenBucket;
  private cancelCheck: () => void = () => undefined;
  private closed = false;

  constructor(
    private readonly certificates: Certificates,
    private readonly gate: Gate,
    private readonly file: Followed<unknown> | null,
    private readonly parts: DoorParts,
  ) {
    const { clock } = parts;
    this.handshakes = new TokenBucket(HANDSHAKES_PER_SECOND, HANDSHAKES_AT_ONCE, () => clock.now());
    this.checkLater();
  }

  createServer(options: ServerOptions): Server {
    const { certificates, parts } = this;
    const server = createServer({
      ...options,
      ...certificates.forOthers,
      // Whether it is good is for the gate to judge, which says why not.
      requestCert: parts.config.authentication.clientCaFile !== null,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: parts.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
      SNICallback: (name, done) => {
        done(null, certificates.forName(name) ?? undefined);
      },
    });
    server.on('connection', (socket) => {
      if (!this.handshakes.take()) socket.destroy();
    });
    server.on('secureConnection', (socket) => {
      this.connections.add(socket);
      socket.once('close', () => this.connections.delete(socket));
    });
    this.servers.add(server);
    server.on('close', () => this.servers.delete(server));
    return server;
  }

  admit(request: IncomingMessage, response: ServerResponse, pages: RequestListener): void {
    void this.gate.admit(request, response, pages);
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
    const { contexts, authorities } = await this.certificates.check();
    await this.file?.check();
    if (this.closed) return;
    if (contexts) for (const server of this.servers) server.setSecureContext(this.certificates.forOthers);
    if (authorities) for (const socket of this.connections) socket.destroy();
    this.checkLater();
  }
}
