import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { messageOf } from '../../base/error-message.js';
import type { Log } from '../../base/log.js';
import { cutText } from '../../base/outside-text.js';
import type { DoorObserver } from '../door.js';
import { answerText } from '../http-endpoint.js';
import type { Authentication } from './authentication.js';
import { verbOf, type Authorizer } from './authorization.js';

export interface GateOptions {
  readonly authentication: Authentication;
  readonly authorizer: Authorizer;
  readonly log: Log;
  readonly observer: DoorObserver;
}

const MAX_SHOWN_BYTES = 256;
const MAX_PATH = 1024;

/** Whether a request comes to the pages. Everything else is answered here: 401, 403, 429 or 503, each with its reason. */
export class Gate {
  constructor(private readonly options: GateOptions) {}

  async admit(request: IncomingMessage, response: ServerResponse, pages: RequestListener): Promise<void> {
    const { log } = this.options;
    try {
      const refusal = await this.judge(request);
      // Who asked may have gone meanwhile.
      if (response.destroyed) return;
      if (refusal === null) {
        pages(request, response);
        return;
      }
      if (refusal.status === 401) response.setHeader('WWW-Authenticate', 'Bearer realm="pointsman"');
      if (refusal.status === 429) response.setHeader('Retry-After', '1');
      answerText(response, refusal.status, `${refusal.text}\n`);
    } catch (error) {
      log.error(error, 'cannot judge a request');
      if (!response.headersSent) answerText(response, 503, `Service Unavailable: ${messageOf(error)}\n`);
    }
  }

  private async judge(request: IncomingMessage): Promise<{ readonly status: number; readonly text: string } | null> {
    const { authentication, authorizer, observer, log } = this.options;
    const identity = await authentication.identify(request);
    if (identity.type === 'unavailable') {
      observer.authenticated('error');
      return { status: identity.status, text: `${TITLES[identity.status]}: ${identity.why}` };
    }
    if (identity.type === 'refused') {
      observer.authenticated('failure');
      log.info(2, 'refused to somebody unknown', { from: request.socket.remoteAddress ?? null, because: identity.why });
      return { status: 401, text: `Unauthorized: ${identity.why}` };
    }
    const { user } = identity;
    observer.authenticated(user.groups.includes('system:unauthenticated') ? 'anonymous' : 'success');
    const verb = verbOf(request.method ?? '');
    const path = canonicalPath(request.url ?? '');
    const shown = `user=${JSON.stringify(cutText(user.name, MAX_SHOWN_BYTES))}, verb=${verb}`;
    if (path === null) {
      observer.authorized('denied');
      return { status: 403, text: `Forbidden (${shown}): the path is not written in its only form` };
    }
    const decision = await authorizer.decide({ user, verb, path });
    switch (decision.type) {
      case 'allowed':
        observer.authorized('allowed');
        return null;
      case 'denied':
        observer.authorized('denied');
        log.info(2, 'refused', { user: user.name, verb, path, because: decision.why });
        return { status: 403, text: `Forbidden (${shown}, path=${JSON.stringify(cutText(path, MAX_SHOWN_BYTES))})` };
      case 'unavailable':
        observer.authorized('error');
        return { status: decision.status, text: `${TITLES[decision.status]}: ${decision.why}` };
    }
  }
}

const TITLES = { 429: 'Too Many Requests', 503: 'Service Unavailable' } as const;

/**
 * The path of a request's target as pages are known by it and rules are written for it; null when it could mean another: with escapes, empty or dotted
 * segments, or a whole URL. Longer ones than any page has cost those who judge them.
 */
function canonicalPath(target: string): string | null {
  const [path = ''] = target.split('?', 1);
  return path.length <= MAX_PATH && path.startsWith('/') && !/[%\\;#]|[^!-~]|\/\/|\/\.\.?(?:\/|$)/.test(path)
    ? path
    : null;
}
