import type { Clock } from '../../../src/base/clock.js';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import { AccessReviews, type Authorizer, type Decision, type Opinion, type Wish } from './authorization.js';
import type { WebhookSettings } from './authorization-file.js';
import { Reviews, unavailable } from './reviews.js';
import type { Unavailable } from './user.js';

export interface WebhooksOptions {
  /** The connection to the API server that is read from; null: there is none just now. */
  readonly api: () => ApiConnection | null;
  readonly connect: (kubeconfig: string) => Promise<ApiConnection>;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: AccessObserver;
}

interface Webhook {
  readonly settings: WebhookSettings;
  readonly reviews: AccessReviews;
  /** The webhook's own connection. */
  readonly connection: ApiConnection | null;
}

/** Webhooks that are asked in turn, until one allows or forbids. */
export class Webhooks implements Authorizer {
  private constructor(private readonly webhooks: readonly Webhook[]) {}

  /** @throws Error when a kubeconfig cannot be used. */
  static async open(settings: readonly WebhookSettings[], options: WebhooksOptions): Promise<Webhooks> {
    const opened: Webhook[] = [];
    try {
      for (const each of settings) opened.push(await openWebhook(each, options));
    } catch (error) {
      for (const { connection } of opened) connection?.close();
      throw error;
    }
    return new Webhooks(opened);
  }

  close(): void {
    for (const { connection } of this.webhooks) connection?.close();
  }

  /** A user whom no webhook allows is denied. Where one gives no answer the decision is unknown, which allows nothing either. */
  async decide(wish: Wish): Promise<Decision> {
    let silent: Unavailable | null = null;
    let why = '';
    for (const webhook of this.webhooks) {
      const opinion = await judge(webhook, wish);
      if (opinion.type === 'allowed' || opinion.type === 'denied') return opinion;
      if (opinion.type === 'nothing') why = opinion.why;
      else if (webhook.settings.deniesOnFailure) return opinion;
      else silent ??= opinion;
    }
    return silent ?? { type: 'denied', why };
  }
}

async function openWebhook(settings: WebhookSettings, options: WebhooksOptions): Promise<Webhook> {
  const { name, kubeconfig, timeout } = settings;
  const connection = kubeconfig === null ? null : await options.connect(kubeconfig);
  const reviews = new Reviews({
    ...options,
    api: connection === null ? options.api : () => connection,
    reviewTimeoutMs: timeout,
    // The kubeconfig's server is the whole of its address.
    ...(connection === null ? {} : { webhook: { name, path: '' } }),
  });
  return { settings, connection, reviews: new AccessReviews({ ...settings, reviews, clock: options.clock }) };
}

async function judge({ settings, reviews }: Webhook, wish: Wish): Promise<Opinion> {
  const { user, verb, path } = wish;
  const { name, uid, groups, extra } = user;
  const request = { user: name, uid, groups, extra, nonResourceAttributes: { path, verb } };
  let failure: string | null = null;
  for (const condition of settings.conditions) {
    try {
      if (condition.evaluate(request) !== true) return { type: 'nothing', why: '' };
    } catch (error) {
      failure ??= messageOf(error).split('\n', 1)[0] ?? '';
    }
  }
  return failure === null
    ? reviews.judge(wish)
    : unavailable(503, `a match condition of webhook ${settings.name}: ${failure}`);
}
