import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.js';
import { messageOf } from '../../base/error-message.js';
import type { Log } from '../../base/log.js';
import type { SecuredConfig } from '../../config/secured.js';
import type { Door } from '../door.js';
import { FileText } from '../../base/file-text.js';
import { Authentication, type FileAuthentication } from './authentication.js';
import { readAuthenticationFile } from './authentication-file.js';
import { AccessReviews, ALWAYS_ALLOW, type Authorizer } from './authorization.js';
import { readAuthorizationFile } from './authorization-file.js';
import { Certificates, type CertificatesOptions } from './certificates.js';
import { Followed } from './followed.js';
import { Gate } from './gate.js';
import { JwtAuthenticators } from './jwt.js';
import { Reviews, type ReviewsOptions } from './reviews.js';
import { TokenBucket } from '../../base/token-bucket.js';
import { TokenReviews } from './token-reviews.js';
import { Webhooks, type WebhooksOptions } from './webhooks.js';

/** How often files are looked at. */
const CHECK_MS = 5000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** New connections, each of which costs about a millisecond of the thread that also follows the cluster. */
const HANDSHAKES_PER_SECOND = 50;
const HANDSHAKES_AT_ONCE = 200;

/** What follows a file. */
type Following = Pick<Followed<unknown>, 'open' | 'check' | 'close'>;

export interface DoorParts
  extends
    Omit<CertificatesOptions, 'config' | 'clientCaFile'>,
    Omit<ReviewsOptions, 'api' | 'webhook'>,
    WebhooksOptions {
  readonly config: SecuredConfig;
  readonly clock: Clock;
  /** Only tests have another than 10 s. */
  readonly handshakeTimeoutMs?: number;
}

/** Opens what the flags ask for; why that is not possible when it is not. */
export async function openDoor(parts: DoorParts): Promise<Door | { readonly problem: string }> {
  const { tls, authentication, authorization } = parts.config;
  const certificates = new Certificates({ ...parts, config: tls, clientCaFile: authentication.clientCaFile });
  const file = authentication.file === null ? null : followAuthentication(authentication.file, parts);
  const webhooks = authorization.file === null ? null : followAuthorization(authorization.file, parts);
  const files: readonly Following[] = [file, webhooks].flatMap((each): readonly Following[] =>
    each === null ? [] : [each],
  );
  try {
    await certificates.open();
    for (const each of files) await each.open();
  } catch (error) {
    for (const each of files) each.close();
    return { problem: messageOf(error) };
  }
  return new SecuredDoor(certificates, makeGate(parts, file, webhooks), files, parts);
}

function followAuthentication(path: string, parts: DoorParts): Followed<FileAuthentication> {
  const { config, log, observer } = parts;
  const warn = warnOf('--authentication-config', log);
  return new Followed<FileAuthentication>({
    flag: '--authentication-config',
    read: textReader(path),
    make: ([text = '']) => {
      const { jwt, anonymous } = readAuthenticationFile(text, warn);
      if (anonymous !== null && config.authentication.anonymous !== null)
        throw new Error('AuthenticationConfiguration.anonymous: Forbidden: --anonymous-auth is given');
      return { tokens: new JwtAuthenticators({ ...parts, settings: jwt }), anonymous };
    },
    log,
    observer,
  });
}

function followAuthorization(path: string, parts: DoorParts): Followed<Webhooks> {
  const { log, observer } = parts;
  return new Followed<Webhooks>({
    flag: '--authorization-config',
    read: textReader(path),
    make: ([text = '']) => Webhooks.open(readAuthorizationFile(text, warnOf('--authorization-config', log)), parts),
    dispose: (webhooks) => {
      webhooks.close();
    },
    log,
    observer,
  });
}

function warnOf(flag: string, log: Log): (problem: string) => void {
  return (problem) => {
    log.warn(`${flag}: ${problem}`);
  };
}

function textReader(path: string): () => Promise<readonly string[]> {
  const file = new FileText(path);
  // Text of others is UTF-8, of which every byte is kept.
  return async () => [Buffer.from(await file.read(), 'latin1').toString('utf8')];
}

function makeGate(
  parts: DoorParts,
  file: Followed<FileAuthentication> | null,
  webhooks: Followed<Webhooks> | null,
): Gate {
  const { config, clock, now, log, observer } = parts;
  const { authentication } = config;
  const reviews = new Reviews(parts);
  const ttl = authentication.tokenTtl;
  return new Gate({
    authentication: new Authentication({
      config: authentication,
      file,
      tokens: ttl === null ? null : new TokenReviews({ reviews, ttl, clock, now }),
      now,
    }),
    authorizer: makeAuthorizer(parts, reviews, webhooks),
    log,
    observer,
  });
}

function makeAuthorizer(
  { config, clock }: DoorParts,
  reviews: Reviews,
  webhooks: Followed<Webhooks> | null,
): Authorizer {
  const { mode, authorizedTtl, unauthorizedTtl } = config.authorization;
  if (webhooks !== null) return { decide: (wish) => webhooks.current.decide(wish) };
  if (mode === 'AlwaysAllow') return ALWAYS_ALLOW;
  return new AccessReviews({ reviews, version: 'v1', authorizedTtl, unauthorizedTtl, clock });
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
    private readonly files: readonly Following[],
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
    for (const file of this.files) file.close();
  }

  private checkLater(): void {
    const { clock } = this.parts;
    this.cancelCheck = clock.callAt(clock.now() + CHECK_MS, () => void this.check());
  }

  private async check(): Promise<void> {
    const { contexts, authorities } = await this.certificates.check();
    for (const file of this.files) await file.check();
    if (this.closed) return;
    if (contexts) for (const server of this.servers) server.setSecureContext(this.certificates.forOthers);
    if (authorities) for (const socket of this.connections) socket.destroy();
    this.checkLater();
  }
}
