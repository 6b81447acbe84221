import type { KeyObject } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { MAX_PEM_BYTES, readFileWithin } from '../../../base/bounded-file.js';
import { sleep, type Clock } from '../../../base/clock.js';
import { makePrivateDirectory, writeDurably } from '../../../base/durable-file.js';
import { errorCode, messageOf } from '../../../base/error-message.js';
import type { Log } from '../../../base/log.js';
import type { ClientCertificateConfig } from '../../../config/client-certificate.js';
import type { Selection } from '../auth/access.js';
import type { Cluster, PemSource, User } from '../auth/kubeconfig.js';
import { ApiError, type ApiConnection } from '../connection.js';
import { apiBackoff } from '../timing.js';
import { kubeconfigText, kubeconfigWith } from './kubeconfig-file.js';
import { belongsTo, exported, firstOf, flawOf, PairFiles, usableCertificate } from './pair-files.js';
import { subjectFor } from './request.js';
import { certificateFor, RefusedRequest, SigningError } from './signing.js';

/** Is notified of the state of our certificate. */
export interface CertificateObserver {
  /** Why there is no certificate, or no renewed one; null: there is no problem. */
  certificateLacks(why: string | null): void;
  /** The result of a request. `failed`: the signer gave no usable certificate. `error`: the request may be repeated. */
  certificateRequested(result: 'issued' | 'denied' | 'failed' | 'error'): void;
  /** Milliseconds since the epoch. */
  certificateEnds(at: number): void;
}

export interface KeeperParts {
  readonly config: ClientCertificateConfig;
  /** Path of the kubeconfig that needs the certificate. */
  readonly kubeconfig: string;
  readonly nodeName: string;
  /** Connects to the API server of a kubeconfig. Rejects with a KubeconfigError. */
  readonly connect: (kubeconfig: string) => Promise<ApiConnection>;
  /** The user and the files that a kubeconfig names. Rejects with a KubeconfigError. */
  readonly select: (kubeconfig: string) => Promise<Selection>;
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
  readonly observer: CertificateObserver;
}

/** Delays after connection trouble, and after a refused request, which leaves an object in the cluster. */
const TROUBLE = { backoffInitialMs: 1000, backoffMaxMs: 60_000 };
const REFUSAL = { backoffInitialMs: 2000, backoffMaxMs: 1_800_000 };
/** A certificate is renewed at a random point in this part of its life, so that nodes do not renew together. */
const RENEWED_FROM = 0.7;
const RENEWED_WITHIN = 0.2;
/** Interval of the check: the wall clock may jump, and another process may renew. */
const LOOK_MS = 600_000;

/** When a certificate is renewed. */
interface Plan {
  readonly pair: string | null;
  readonly dueAt: number;
}

/** Requests a certificate if there is none, and renews it before it expires. */
export class CertificateKeeper {
  private readonly files: PairFiles;
  /** What has been reported since the last success. */
  private readonly reported = new Set<string>();

  constructor(private readonly parts: KeeperParts) {
    this.files = new PairFiles(parts.config.directory);
  }

  /**
   * Why the kubeconfig cannot be used for lack of a certificate; null: it can be used. Rejects with a KubeconfigError if
   * something else is wrong with it.
   */
  async flaw(): Promise<string | null> {
    const user = await this.user();
    if (user === 'none') return 'there is none';
    if (user === null || user.certificate === null || user.key === null) return null;
    try {
      const [certificate, key] = [await textOf(user.certificate), await textOf(user.key)];
      return flawOf({ certificate, key }, this.parts.now());
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Whether the kubeconfig names the certificate that this keeper writes. */
  async isOurs(): Promise<boolean> {
    const user = await this.user();
    const certificate = user === 'none' || user === null ? null : user.certificate;
    return certificate?.type === 'file' && resolve(certificate.path) === this.files.link;
  }

  /** Connects to the API server once there is a certificate. Rejects when the signal is aborted. */
  async first(bootstrap: string, signal: AbortSignal): Promise<ApiConnection> {
    const connection = await this.insist(signal, async () => {
      // Another process may have repaired it.
      if ((await this.flaw()) !== null) await this.bootstrap(bootstrap, signal);
      return this.parts.connect(this.parts.kubeconfig);
    });
    if (connection === null) throw new ApiError('closed', 'the certificate is not waited for any more');
    return connection;
  }

  /** Renews the certificate until the signal is aborted. */
  async renew(connection: ApiConnection, signal: AbortSignal): Promise<void> {
    const { now, clock } = this.parts;
    let plan = await this.plan(null);
    while (!signal.aborted) {
      const left = plan.dueAt - now();
      if (left > 0) await sleep(Math.min(left, LOOK_MS), clock, signal);
      else await this.insist(signal, () => this.renewOnce(connection, signal));
      plan = await this.plan(plan);
    }
  }

  /** The life of a just renewed certificate counts from now: signers set its begin in the past. */
  private async plan(former: Plan | null): Promise<Plan> {
    const { now, random, observer } = this.parts;
    const pair = await this.files.current().catch(() => null);
    if (former !== null && pair === former.pair) return former;
    if (pair === null || flawOf({ certificate: pair, key: pair }, now()) !== null) return { pair, dueAt: now() };
    const { validFrom, validTo } = firstOf(pair);
    const [begin, end] = [former === null ? Date.parse(validFrom) : now(), Date.parse(validTo)];
    observer.certificateEnds(end);
    return { pair, dueAt: begin + (end - begin) * (RENEWED_FROM + RENEWED_WITHIN * random()) };
  }

  private async renewOnce(connection: ApiConnection, signal: AbortSignal): Promise<void> {
    const { config, connect, kubeconfig, select, now } = this.parts;
    const { cluster } = await select(kubeconfig);
    const pair = await this.files.current();
    const isDead = pair === null || flawOf({ certificate: pair, key: pair }, now()) !== null;
    if (isDead && config.bootstrapKubeconfig !== null)
      await this.obtainBy(await connect(config.bootstrapKubeconfig), cluster, signal);
    else await this.obtain(connection, cluster, signal);
    await this.files.dropKey();
    // The first request drains connections with the former certificate, whatever the answer is.
    await statusOf(connection, signal).catch(() => null);
  }

  private async bootstrap(bootstrap: string, signal: AbortSignal): Promise<void> {
    const { connect, select, kubeconfig, log } = this.parts;
    const { cluster } = await select(bootstrap);
    if (!(await this.isFinished())) await this.obtainBy(await connect(bootstrap), cluster, signal);
    if (!(await this.isOurs())) {
      await makePrivateDirectory(resolve(kubeconfig, '..'));
      await writeDurably(kubeconfig, kubeconfigText(cluster, this.files.link));
      log.info(0, 'the kubeconfig was written', { kubeconfig, certificate: this.files.link });
    }
    await this.files.dropKey();
  }

  /** Whether an earlier process ended with the pair in place, so that only the kubeconfig is missing. */
  private async isFinished(): Promise<boolean> {
    const [pending, pair] = [await this.files.pendingKey(), await this.files.current()];
    if (pending === null || pair === null || !belongsTo(pair, pending)) return false;
    return flawOf({ certificate: pair, key: pair }, this.parts.now()) === null;
  }

  private async obtainBy(api: ApiConnection, cluster: Cluster | null, signal: AbortSignal): Promise<void> {
    try {
      await this.obtain(api, cluster, signal);
    } finally {
      api.close();
    }
  }

  private async obtain(api: ApiConnection, cluster: Cluster | null, signal: AbortSignal): Promise<void> {
    const { now, observer, log, config, nodeName } = this.parts;
    const { signerName } = config;
    const key = await this.key();
    const subject = subjectFor(signerName, nodeName);
    const waiting = (request: string, waitsFor: string, help: string): void => {
      const isNew = this.lacks(`request ${request} waits for ${waitsFor}${help === '' ? '' : `: ${help}`}`);
      if (isNew) log.warn('a client certificate is asked for', { request, signer: signerName, waitsFor, help });
    };
    try {
      const text = await certificateFor({ api, key, signerName, subject, signal, waiting });
      const certificate = usableCertificate(text, key, now());
      await this.tryOut(kubeconfigWith(cluster, certificate, exported(key)), signal);
      await this.files.install(certificate, key, now());
    } catch (error) {
      // A refused request is final.
      if (error instanceof RefusedRequest) await this.files.dropKey();
      throw error;
    }
    observer.certificateRequested('issued');
    log.info(0, 'a client certificate was issued', { user: subject.commonName, file: this.files.link });
  }

  /**
   * Sends the API server a request with a certificate that is not in use yet: the previous one stays in use until the server accepts the new one. The request
   * is retried, because the signer may be ahead of the server that has to trust it.
   */
  private async tryOut(kubeconfig: string, signal: AbortSignal): Promise<void> {
    const { trial } = this.files;
    try {
      await writeDurably(trial, kubeconfig);
      const connection = await this.parts.connect(trial);
      try {
        if ((await statusOf(connection, signal)) === 401)
          throw new SigningError('the API server does not accept the issued certificate (401)');
      } finally {
        connection.close();
      }
    } finally {
      await rm(trial, { force: true });
    }
  }

  /** The key of an unfinished request, or a new one. */
  private async key(): Promise<KeyObject> {
    const [pending, pair] = [await this.files.pendingKey(), await this.files.current()];
    return pending !== null && (pair === null || !belongsTo(pair, pending)) ? pending : await this.files.makeKey();
  }

  /** Retries until it succeeds; null when the signal is aborted before. Each failure is reported once. */
  private async insist<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | null> {
    const { clock, random, log, observer } = this.parts;
    const [trouble, refusal] = [apiBackoff(TROUBLE, random), apiBackoff(REFUSAL, random)];
    while (!signal.aborted) {
      try {
        const done = await work();
        this.reported.clear();
        observer.certificateLacks(null);
        return done;
      } catch (error) {
        if (isAborted(signal)) break;
        const isRefused = error instanceof RefusedRequest;
        observer.certificateRequested(isRefused ? error.how : 'error');
        if (this.lacks(messageOf(error))) log.error(error, 'no new client certificate, will be retried');
        await sleep((isRefused ? refusal : trouble).next(), clock, signal);
      }
    }
    return null;
  }

  /** Reports a problem. Whether it is new. */
  private lacks(why: string): boolean {
    this.parts.observer.certificateLacks(why);
    const isNew = !this.reported.has(why);
    this.reported.add(why);
    return isNew;
  }

  private async user(): Promise<User | null | 'none'> {
    const { kubeconfig, select } = this.parts;
    try {
      await stat(kubeconfig);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return 'none';
    }
    return (await select(kubeconfig)).user;
  }
}

/** For the compiler: the signal may be aborted during an await. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** The status of a request without any effect. */
async function statusOf(connection: ApiConnection, signal: AbortSignal): Promise<number> {
  const { body, status } = await connection.get('/version', {}, { accept: 'application/json', signal });
  body.destroy();
  return status;
}

async function textOf(source: PemSource): Promise<string> {
  return source.type === 'data' ? source.pem : (await readFileWithin(source.path, MAX_PEM_BYTES)).toString('latin1');
}
