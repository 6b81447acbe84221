import { FileText } from '../../../src/base/file-text.js';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { serviceSubject, type EventRecorder } from '../../../src/base/events.js';
import type { Log } from '../../../src/base/log.js';
import type { SecuredConfig } from '../../../src/config/secured.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import type { AccessControl } from '../../../src/serve/access-control.js';
import { ClientShares } from '../../../src/serve/client-shares.js';
import { HttpEndpoint, route } from '../../../src/serve/http-endpoint.js';
import { Followed } from '../../secured/src/followed.js';
import { openAccessControl } from '../../secured/src/access-control.js';
import { judge } from './judge.js';
import { ObservedCluster } from './observed-cluster.js';
import type { WebhookOptions } from './options.js';
import { probePages, ReviewPages } from './pages.js';
import { DEFAULT_POLICY, readPolicy, type ServicePolicy } from './policy.js';
import type { AdmissionRequest, Verdict } from './review.js';
import type { Work } from './turns.js';

/** How often the policy is looked at. */
const CHECK_MS = 5000;
const MAX_SERVICE_NAME = 253;

interface WebhookParts {
  readonly options: WebhookOptions;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
  readonly events: EventRecorder;
  /** Called once, when it cannot listen. */
  readonly onFatal: (error: Error) => void;
}

/** Answers reviews over TLS, and probes beside it; the certificate and the policy follow their files. */
export class Webhook {
  readonly cluster: ObservedCluster;
  private readonly policy: Followed<ServicePolicy> | null;
  private readonly pages: ReviewPages;
  private readonly reviews: HttpEndpoint;
  private readonly probes: HttpEndpoint;
  private accessControl: AccessControl | null = null;
  private cancelCheck: () => void = () => undefined;
  private stopping = false;

  constructor(private readonly parts: WebhookParts) {
    const { options, clock, log, onFatal } = parts;
    this.cluster = new ObservedCluster(options.serviceRanges, log, options.limits);
    this.policy = options.policyFile === null ? null : followPolicy(options.policyFile, log);
    this.pages = new ReviewPages({ judge: (request) => this.judge(request), clock, log });
    const endpoint = { clock, log, onFatal, shares: new ClientShares(systemClock, log) };
    this.reviews = new HttpEndpoint(
      'reviews',
      { ...endpoint, bind: { ...options.listen, hardFail: true }, accessControl: () => this.accessControl },
      (...exchange) => this.pages.answer(...exchange),
    );
    const probes = probePages(() => this.unready);
    this.probes = new HttpEndpoint(
      'probes',
      { ...endpoint, bind: { ...options.health, hardFail: true } },
      (request, response) => route(request, response, (path) => probes.get(path), { log }),
    );
  }

  /** @throws Error that names the flag whose file cannot be used. */
  async start(): Promise<void> {
    const { options, clock, log, now } = this.parts;
    await this.openPolicy();
    const opened = await openAccessControl({
      config: accessConfig(options),
      clock,
      log,
      now,
      observer: NO_OBSERVER,
      // Only TLS and client certificates of the access control are used.
      nodeName: '',
      addresses: () => [],
      api: () => null,
      connect: () => Promise.reject(new TypeError('no webhook is asked')),
    });
    if ('problem' in opened) throw new Error(opened.problem);
    this.accessControl = opened;
    await Promise.all([this.reviews.start(), this.probes.start()]);
    if (this.policy !== null) this.checkLater(this.policy);
  }

  /** A policy that cannot be read keeps nothing from starting: a pod that was moved would end all checks, or with `failurePolicy: Fail` all changes. */
  private async openPolicy(): Promise<void> {
    const { log } = this.parts;
    try {
      await this.policy?.open();
    } catch (error) {
      log.error(error, 'the policy cannot be used, and nothing is refused until it can');
    }
  }

  /** Ports listened on, reviews' and probes'; null while there is none. */
  get ports(): readonly [number | null, number | null] {
    return [this.reviews.port(), this.probes.port()];
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.cancelCheck();
    await Promise.allSettled([this.reviews.close(), this.probes.close()]);
    await this.accessControl?.close();
    this.policy?.close();
  }

  /** Whether only those may ask whose certificate counts. */
  private get isAuthenticated(): boolean {
    return this.parts.options.clientCaFile !== null;
  }

  private get unready(): string | null {
    const { unread } = this.cluster;
    return unread.length === 0 ? null : `not read yet: ${unread.join(', ')}`;
  }

  private *judge(request: AdmissionRequest): Work<Verdict> {
    const { cluster } = this;
    const { log, events } = this.parts;
    const { current, names } = cluster;
    const policy = this.policy === null ? DEFAULT_POLICY : this.policy.latest;
    const verdict = yield* judge(request, { cluster: current, policy, names });
    const { refusal } = verdict;
    if (refusal === null) return verdict;
    const { namespace, name, operation, user, dryRun, subResource } = request;
    const service = `${namespace}/${name}`;
    log.info(0, 'refused', { service, operation, subResource, user, dryRun, because: refusal });
    // A user reads the result of a request; a controller that writes a status shows it to no user. An unknown client could make all of this up.
    if (subResource === 'status' && !dryRun && name.length <= MAX_SERVICE_NAME && this.isAuthenticated)
      events.record({
        type: 'Warning',
        reason: 'StatusRefused',
        action: 'Admission',
        regarding: serviceSubject(service),
        related: null,
        note: refusal,
      });
    return verdict;
  }

  private checkLater(policy: Followed<ServicePolicy>): void {
    const { clock } = this.parts;
    this.cancelCheck = clock.callAt(clock.now() + CHECK_MS, () => {
      void policy.check().then(() => {
        if (!this.stopping) this.checkLater(policy);
      });
    });
  }
}

function followPolicy(path: string, log: Log): Followed<ServicePolicy> {
  const file = new FileText(path);
  const warn = (problem: string): void => {
    log.warn(`--policy: ${problem}`);
  };
  return new Followed({
    flag: '--policy',
    log,
    observer: NO_OBSERVER,
    read: async () => [await file.readUtf8()],
    make: ([text = '']) => readPolicy(text, warn),
  });
}

/** TLS by the pair of files, and client certificates where authorities are named. */
function accessConfig({ pair, clientCaFile }: WebhookOptions): SecuredConfig {
  return {
    tls: { pair, directory: '', named: [], ciphers: null, minVersion: 'TLSv1.2' },
    authentication: { clientCaFile, tokenTtl: null, anonymous: clientCaFile === null, file: null },
    authorization: { mode: 'AlwaysAllow', file: null, authorizedTtl: 0, unauthorizedTtl: 0 },
    audit: null,
  };
}

/** No metrics are counted for the access control. */
const NO_OBSERVER: AccessObserver = {
  reloaded: () => undefined,
  authenticated: () => undefined,
  authorized: () => undefined,
  reviewed: () => undefined,
  audited: () => undefined,
  certificateEnds: () => undefined,
};
