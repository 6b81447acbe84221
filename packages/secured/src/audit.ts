import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { clientOf } from '../../../src/base/client-network.js';
import { messageOf } from '../../../src/base/error-message.js';
import { parseAddress } from '../../../src/base/ip.js';
import { cutText } from '../../../src/base/outside-text.js';
import { formatMicroTime } from '../../../src/base/timestamp.js';
import type { AuditMode } from '../../../src/config/audit.js';
import type { RotatedFile } from '../../../src/observe/rotated-file.js';
import type { AuditPolicy, AuditVerdict, Stage } from './audit-policy.js';
import type { Decision } from './authorization.js';
import type { Followed } from './followed.js';
import type { User } from './user.js';

interface AuditOptions {
  readonly mode: AuditMode;
  readonly policy: Pick<Followed<AuditPolicy>, 'current'>;
  readonly file: Pick<RotatedFile, 'write' | 'close' | 'fault'>;
  /** Milliseconds since the epoch, with fractions. */
  readonly now: () => number;
}

/** The events of one request. */
export interface AuditedExchange {
  /**
   * The user is known; from here on the answer is written down, too.
   *
   * @returns false when it must not be answered, as it could not be written down.
   */
  identified(user: User): Promise<boolean>;
  /** The user is unknown, which is the answer: nothing more is to come. */
  unidentified(status: number, why: string): Promise<void>;
  decided(decision: Decision): void;
  /** Why it does not come to the pages. */
  refused(why: string): void;
  /** It was to be answered, and an error came in between. */
  panicked(error: unknown): void;
}

const NOTHING = (): void => undefined;

/** For requests that are not audited. */
export const UNAUDITED: AuditedExchange = {
  identified: () => Promise.resolve(true),
  unidentified: () => Promise.resolve(),
  decided: NOTHING,
  refused: NOTHING,
  panicked: NOTHING,
};

const MAX_AGENT_BYTES = 1024;
const MAX_URI_BYTES = 1024;
const MAX_REASON_BYTES = 1024;
/** The component's own, beside those of the API server. */
const REASON = 'pointsman/reason';

/** As the API server calls them. */
const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
};

/** Writes down the user, the request and the result, as a policy sets it. */
export class Audit {
  constructor(private readonly options: AuditOptions) {}

  /** The identifier is ours, whatever the client calls its request: the client's may have been used before. */
  begin(request: IncomingMessage, response: ServerResponse): AuditedExchange {
    const auditID = randomUUID();
    response.setHeader('Audit-ID', auditID);
    return new Exchange(this.options, auditID, request, response);
  }

  /** Why Events are lost now; null: they are not. */
  get fault(): string | null {
    return this.options.file.fault;
  }

  close(): Promise<void> {
    return this.options.file.close();
  }
}

class Exchange implements AuditedExchange {
  readonly #receivedAt: number;
  /** Null: the client has gone already. */
  readonly #from: string | null;
  readonly #annotations = new Map<string, string>();
  #user: User | null = null;
  #verdict: AuditVerdict | null = null;
  #isOver = false;
  #message = '';

  constructor(
    private readonly options: AuditOptions,
    private readonly auditID: string,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    this.#receivedAt = options.now();
    const from = request.socket.remoteAddress ?? null;
    // As `::ffff:…` where a socket takes both families.
    this.#from = from === null ? null : (parseAddress(from) ?? from);
  }

  async identified(user: User): Promise<boolean> {
    this.#user = user;
    this.#judge();
    const isWritten = this.#write('RequestReceived', null);
    if (this.response.destroyed) this.#closed();
    else
      this.response.once('close', () => {
        this.#closed();
      });
    return (await isWritten) || this.options.mode !== 'blocking-strict';
  }

  async unidentified(status: number, why: string): Promise<void> {
    this.#judge();
    this.refused(why);
    await this.#end('ResponseStarted', status);
  }

  decided(decision: Decision): void {
    const { type, why = '' } = decision;
    if (type !== 'unavailable')
      this.#annotations.set('authorization.k8s.io/decision', type === 'allowed' ? 'allow' : 'forbid');
    this.#annotations.set('authorization.k8s.io/reason', cutText(why, MAX_REASON_BYTES));
  }

  refused(why: string): void {
    this.#message = cutText(why, MAX_REASON_BYTES);
    this.#annotations.set(REASON, this.#message);
  }

  panicked(error: unknown): void {
    if (this.#user === null) this.#judge();
    this.#message = cutText(messageOf(error), MAX_REASON_BYTES);
    void this.#end('Panic', 500);
  }

  #closed(): void {
    const { headersSent, statusCode, writableFinished } = this.response;
    if (!writableFinished) this.#message ||= 'the connection was closed before the answer was sent';
    void this.#end('ResponseComplete', headersSent ? statusCode : null);
  }

  #judge(): void {
    const [path = ''] = this.#uri.split('?', 1);
    this.#verdict = this.options.policy.current.judge({ user: this.#user, verb: this.#verb, path });
  }

  async #end(stage: Stage, code: number | null): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#write(stage, statusOf(code, this.#message));
  }

  /** False when it is lost; in mode batch no request waits for that. */
  #write(stage: Stage, responseStatus: object | null): Promise<boolean> {
    if (this.#verdict === null || this.#verdict.omitted.has(stage)) return Promise.resolve(true);
    const agent = this.request.headers['user-agent'];
    const event = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: this.#verdict.level,
      auditID: this.auditID,
      stage,
      requestURI: cutText(this.#uri, MAX_URI_BYTES),
      verb: this.#verb,
      user: userInfo(this.#user),
      // Clients can forge the headers about whom a request was forwarded for.
      ...(this.#from === null ? {} : { sourceIPs: [this.#from] }),
      ...(agent === undefined ? {} : { userAgent: cutText(agent, MAX_AGENT_BYTES) }),
      ...(responseStatus === null ? {} : { responseStatus }),
      requestReceivedTimestamp: microTime(this.#receivedAt),
      stageTimestamp: microTime(this.options.now()),
      ...(this.#annotations.size === 0 ? {} : { annotations: Object.fromEntries(this.#annotations) }),
    };
    const { file, mode } = this.options;
    const line = JSON.stringify(event);
    if (mode === 'batch') return Promise.resolve(file.write(line, this.#client));
    return new Promise((resolve) => {
      file.write(line, this.#client, (error) => {
        resolve(error === null);
      });
    });
  }

  /** The client that shares the room for Events with others: a known user, or else an address or network. */
  get #client(): string {
    const user = this.#user;
    if (user !== null && !user.groups.includes('system:unauthenticated')) return `user ${user.name}`;
    return clientOf(this.#from).key;
  }

  get #uri(): string {
    return this.request.url ?? '';
  }

  get #verb(): string {
    return (this.request.method ?? '').toLowerCase();
  }
}

function userInfo(user: User | null): object {
  if (user === null) return {};
  const { name, uid, groups, extra } = user;
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    groups,
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** @param code null: nothing was answered. */
function statusOf(code: number | null, message: string): object {
  if (code !== null && code < 400) return { metadata: {}, ...(message === '' ? {} : { message }), code };
  const reason = code === null ? undefined : REASONS[code];
  return {
    metadata: {},
    status: 'Failure',
    ...(message === '' ? {} : { message }),
    ...(reason === undefined ? {} : { reason }),
    ...(code === null ? {} : { code }),
  };
}

function microTime(milliseconds: number): string {
  return formatMicroTime(BigInt(Math.floor(milliseconds * 1000)));
}
