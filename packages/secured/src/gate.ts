import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import { cutText } from '../../../src/base/outside-text.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import type { Pages } from '../../../src/serve/access-control.js';
import { answerText } from '../../../src/serve/http-endpoint.js';
import { UNAUDITED, type Audit, type AuditedExchange } from './audit.js';
import type { Authentication } from './authentication.js';
import { verbOf, type Authorizer, type Decision } from './authorization.js';
import type { User } from './user.js';

interface GateOptions {
  readonly authentication: Authentication;
  readonly authorizer: Authorizer;
  /** Null: nothing is written down. */
  readonly audit: Pick<Audit, 'begin'> | null;
  readonly log: Log;
  readonly observer: AccessObserver;
}

const MAX_SHOWN_BYTES = 256;
const MAX_PATH = 1024;

/** Whether a request comes to the pages. Everything else is answered here: 401, 403, 429 or 503, each with its reason. */
export class Gate {
  constructor(private readonly options: GateOptions) {}

  async admit(request: IncomingMessage, response: ServerResponse, pages: Pages): Promise<void> {
    const { log, audit } = this.options;
    const exchange = audit?.begin(request, response) ?? UNAUDITED;
    try {
      const refusal = await this.judge(request, exchange);
      // The client may have gone meanwhile.
      if (response.destroyed) return;
      if (refusal === null) {
        const failure = await pages(request, response);
        if (failure instanceof Error) exchange.panicked(failure);
        return;
      }
      if (refusal.status === 401) response.setHeader('WWW-Authenticate', 'Bearer realm="pointsman"');
      if (refusal.status === 429) response.setHeader('Retry-After', '1');
      answerText(response, refusal.status, `${refusal.text}\n`);
    } catch (error) {
      log.error(error, 'cannot authorize a request');
      exchange.panicked(error);
      if (!response.headersSent) answerText(response, 503, `Service Unavailable: ${messageOf(error)}\n`);
    }
  }

  private async judge(request: IncomingMessage, exchange: AuditedExchange): Promise<Refusal | null> {
    const { authentication, observer, log } = this.options;
    const identity = await authentication.identify(request);
    if (identity.type === 'user') {
      const { user } = identity;
      observer.authenticated(user.groups.includes('system:unauthenticated') ? 'anonymous' : 'success');
      if (await exchange.identified(user)) return this.authorize(user, request, exchange);
      exchange.refused(NOT_AUDITED);
      return { status: 500, text: `Internal Server Error: ${NOT_AUDITED}` };
    }
    const { why } = identity;
    const status = identity.type === 'unavailable' ? identity.status : 401;
    await exchange.unidentified(status, why);
    observer.authenticated(identity.type === 'unavailable' ? 'error' : 'failure');
    if (identity.type === 'refused')
      log.info(2, 'refused an unauthenticated request', { from: request.socket.remoteAddress ?? null, because: why });
    return { status, text: `${TITLES[status]}: ${why}` };
  }

  private async authorize(
    user: User,
    { method = '', url = '' }: IncomingMessage,
    exchange: AuditedExchange,
  ): Promise<Refusal | null> {
    const { authorizer, observer, log } = this.options;
    const verb = verbOf(method);
    const path = judgedPath(url);
    const shown = `user=${JSON.stringify(cutText(user.name, MAX_SHOWN_BYTES))}, verb=${verb}`;
    const decision: Decision =
      path === null ? { type: 'denied', why: NOT_CANONICAL } : await authorizer.decide({ user, verb, path });
    exchange.decided(decision);
    switch (decision.type) {
      case 'allowed':
        observer.authorized('allowed');
        return null;
      case 'denied': {
        observer.authorized('denied');
        log.info(2, 'refused', { user: user.name, verb, path, because: decision.why });
        const text =
          path === null
            ? `Forbidden (${shown}): ${NOT_CANONICAL}`
            : `Forbidden (${shown}, path=${JSON.stringify(cutText(path, MAX_SHOWN_BYTES))})`;
        exchange.refused(text);
        return { status: 403, text };
      }
      case 'unavailable':
        observer.authorized('error');
        exchange.refused(decision.why);
        return { status: decision.status, text: `${TITLES[decision.status]}: ${decision.why}` };
    }
  }
}

interface Refusal {
  readonly status: number;
  readonly text: string;
}

const NOT_AUDITED = 'the request cannot be written to the audit log, which --audit-log-mode=blocking-strict asks for';
const NOT_CANONICAL = 'the path is not in canonical form';

const TITLES = { 401: 'Unauthorized', 429: 'Too Many Requests', 503: 'Service Unavailable' } as const;

/** The files of the page are judged as one, and so are all its requests. A review for each path would be more than one user may ask for at once. */
const AS_ONE = ['/ui/api/', '/ui/'] as const;

/** The path that rules are written for; null as in {@link canonicalPath}. */
function judgedPath(target: string): string | null {
  const path = canonicalPath(target);
  return path === null ? null : (AS_ONE.find((start) => path.startsWith(start)) ?? path);
}

/**
 * The path of a request's target, as pages and rules use it. Null when it could mean another path: with escapes, empty or dotted
 * segments, or a whole URL. Longer ones than any page has cost those who judge them.
 */
function canonicalPath(target: string): string | null {
  const [path = ''] = target.split('?', 1);
  return path.length <= MAX_PATH && path.startsWith('/') && !/[%\\;#]|[^!-~]|\/\/|\/\.\.?(?:\/|$)/.test(path)
    ? path
    : null;
}
