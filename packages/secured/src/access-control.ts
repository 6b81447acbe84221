import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../src/base/clock.js';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import type { AuditConfig } from '../../../src/config/audit.js';
import type { SecuredConfig } from '../../../src/config/secured.js';
import { withRegularExpressions } from '../../../src/config/tables/regular-expression.js';
import type { AccessControl, Pages } from '../../../src/serve/access-control.js';
import { isSuccess } from '../../../src/serve/connection-limit.js';
import { FileText } from '../../../src/base/file-text.js';
import { RotatedFile } from '../../../src/observe/rotated-file.js';
import { Audit } from './audit.js';
import { AuditPolicy } from './audit-policy.js';
import { Authentication, type FileAuthentication } from './authentication.js';
import { readAuthenticationFile } from './authentication-file.js';
import { AccessReviews, ALWAYS_ALLOW, type Authorizer } from './authorization.js';
import { readAuthorizationFile } from './authorization-file.js';
import { Certificates, type CertificatesOptions } from './certificates.js';
import { Followed } from './followed.js';
import { Gate } from './gate.js';
import { Handshakes } from './handshakes.js';
import { JwtAuthenticators } from './jwt.js';
import { Reviews, type ReviewsOptions } from './reviews.js';
import { TokenReviews } from './token-reviews.js';
import { Webhooks, type WebhooksOptions } from './webhooks.js';

/** How often files are looked at. */
const CHECK_MS = 5000;
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** What follows a file. */
type Following = Pick<Followed<unknown>, 'open' | 'check' | 'close'>;

export interface SecuredAccessParts
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
export async function openAccessControl(
  parts: SecuredAccessParts,
): Promise<AccessControl | { readonly problem: string }> {
  const { tls, authentication, authorization, audit } = parts.config;
  const certificates = new Certificates({ ...parts, config: tls, clientCaFile: authentication.clientCaFile });
  const file = authentication.file === null ? null : followAuthentication(authentication.file, parts);
  const webhooks = authorization.file === null ? null : followAuthorization(authorization.file, parts);
  const policy = audit === null ? null : followPolicy(audit.policyFile, parts);
  const files: readonly Following[] = [file, webhooks, policy].flatMap((each): readonly Following[] =>
    each === null ? [] : [each],
  );
  try {
    await certificates.open();
    for (const each of files) await each.open();
    const trail = audit === null || policy === null ? null : await openAudit(audit, policy, parts);
    const gate = makeGate(parts, file, webhooks, trail);
    return new SecuredAccessControl({ ...parts, certificates, gate, files, audit: trail });
  } catch (error) {
    for (const each of files) each.close();
    return { problem: messageOf(error) };
  }
}

function followAuthentication(path: string, parts: SecuredAccessParts): Followed<FileAuthentication> {
  const { config, log, observer } = parts;
  const warn = warnOf('--authentication-config', log);
  return new Followed<FileAuthentication>({
    flag: '--authentication-config',
    read: textReader(path),
    make: async ([text = '']) => {
      const { jwt, anonymous } = await withRegularExpressions((tell) => readAuthenticationFile(text, tell), warn);
      if (anonymous !== null && config.authentication.anonymous !== null)
        throw new Error('AuthenticationConfiguration.anonymous: Forbidden: --anonymous-auth is given');
      return { tokens: new JwtAuthenticators({ ...parts, settings: jwt }), anonymous };
    },
    log,
    observer,
  });
}

function followAuthorization(path: string, parts: SecuredAccessParts): Followed<Webhooks> {
  const { log, observer } = parts;
  const warn = warnOf('--authorization-config', log);
  return new Followed<Webhooks>({
    flag: '--authorization-config',
    read: textReader(path),
    make: async ([text = '']) =>
      Webhooks.open(await withRegularExpressions((tell) => readAuthorizationFile(text, tell), warn), parts),
    dispose: (webhooks) => {
      webhooks.close();
    },
    log,
    observer,
  });
}

function followPolicy(path: string, { log, observer }: SecuredAccessParts): Followed<AuditPolicy> {
  const flag = '--audit-policy-file';
  const warn = warnOf(flag, log);
  return new Followed({
    flag,
    log,
    observer,
    read: textReader(path),
    make: ([text = '']) => AuditPolicy.read(text, warn),
  });
}

/** @throws Error that names the flag. */
async function openAudit(
  { mode, log: limits }: AuditConfig,
  policy: Followed<AuditPolicy>,
  { log, observer, now }: SecuredAccessParts,
): Promise<Audit> {
  const onLoss = (error: unknown): void => {
    log.error(error, 'Events about requests are lost', { flag: '--audit-log-path' });
  };
  const onLines = (outcome: 'written' | 'lost', count: number): void => {
    observer.audited(outcome === 'written' ? 'written' : 'dropped', count);
  };
  try {
    return new Audit({ mode, policy, file: await RotatedFile.open({ ...limits, now, onLoss, onLines }), now });
  } catch (error) {
    throw new Error(`--audit-log-path: ${messageOf(error)}`, { cause: error });
  }
}

function warnOf(flag: string, log: Log): (problem: string) => void {
  return (problem) => {
    log.warn(`${flag}: ${problem}`);
  };
}

function textReader(path: string): () => Promise<readonly string[]> {
  const file = new FileText(path);
  return async () => [await file.readUtf8()];
}

function makeGate(
  parts: SecuredAccessParts,
  file: Followed<FileAuthentication> | null,
  webhooks: Followed<Webhooks> | null,
  audit: Audit | null,
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
    audit,
    log,
    observer,
  });
}

function makeAuthorizer(
  { config, clock }: SecuredAccessParts,
  reviews: Reviews,
  webhooks: Followed<Webhooks> | null,
): Authorizer {
  const { mode, authorizedTtl, unauthorizedTtl } = config.authorization;
  if (webhooks !== null) return { decide: (wish) => webhooks.current.decide(wish) };
  if (mode === 'AlwaysAllow') return ALWAYS_ALLOW;
  return new AccessReviews({ reviews, version: 'v1', authorizedTtl, unauthorizedTtl, clock });
}

interface OpenedParts extends SecuredAccessParts {
  readonly certificates: Certificates;
  readonly gate: Gate;
  readonly files: readonly Following[];
  readonly audit: Audit | null;
}

/** Serves TLS, follows the files of its configuration, and lets through the clients that the gate admits. */
class SecuredAccessControl implements AccessControl {
  private readonly servers = new Set<ReturnType<typeof createServer>>();
  private readonly connections = new Set<TLSSocket>();
  private readonly handshakes: Handshakes;
  private cancelCheck: () => void = () => undefined;
  private closed = false;

  constructor(private readonly parts: OpenedParts) {
    this.handshakes = new Handshakes(parts.clock);
    this.checkLater();
  }

  createServer(options: ServerOptions): Server {
    const { parts } = this;
    const { certificates } = parts;
    const server = createServer({
      ...options,
      ...certificates.forOthers,
      // The gate decides whether it is valid, and reports why not.
      requestCert: parts.config.authentication.clientCaFile !== null,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: parts.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
      SNICallback: (name, done) => {
        done(null, certificates.forName(name) ?? undefined);
      },
    });
    server.on('connection', (socket: Socket) => {
      if (!this.handshakes.take(socket.remoteAddress)) socket.destroy();
    });
    server.on('secureConnection', (socket) => {
      this.connections.add(socket);
      socket.once('close', () => this.connections.delete(socket));
    });
    this.servers.add(server);
    server.on('close', () => this.servers.delete(server));
    return server;
  }

  admit(request: IncomingMessage, response: ServerResponse, pages: Pages): void {
    const { remoteAddress } = request.socket;
    response.once('finish', () => {
      if (isSuccess(response)) this.handshakes.admit(remoteAddress);
    });
    void this.parts.gate.admit(request, response, pages);
  }

  auditFault(): string | null {
    return this.parts.audit?.fault ?? null;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelCheck();
    for (const file of this.parts.files) file.close();
    await this.parts.audit?.close();
  }

  private checkLater(): void {
    const { clock } = this.parts;
    this.cancelCheck = clock.callAt(clock.now() + CHECK_MS, () => void this.check());
  }

  private async check(): Promise<void> {
    const { certificates, files } = this.parts;
    const { contexts, authorities } = await certificates.check();
    for (const file of files) await file.check();
    if (this.closed) return;
    if (contexts) for (const server of this.servers) server.setSecureContext(certificates.forOthers);
    if (authorities) for (const socket of this.connections) socket.destroy();
    this.checkLater();
  }
}
