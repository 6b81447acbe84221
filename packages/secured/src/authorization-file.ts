import { AUTHORIZATION_KIND } from '../../../src/config/kinds/access.js';
import { readKind } from '../../../src/config/tables/document.js';
import { compile, type Expression } from '../../../src/config/tables/expression.js';
import type { Section } from '../../../src/config/tables/section.js';
import type { ReviewVersion } from './authorization.js';

/** One webhook of an `AuthorizationConfiguration`, checked. Times in milliseconds. */
export interface WebhookSettings {
  readonly name: string;
  readonly authorizedTtl: number;
  readonly unauthorizedTtl: number;
  readonly timeout: number;
  readonly version: ReviewVersion;
  /** Whether its silence forbids, or leaves it to the next. */
  readonly deniesOnFailure: boolean;
  /** Null: the API server that is read from. */
  readonly kubeconfig: string | null;
  /** All must hold for it to be asked. */
  readonly conditions: readonly Expression[];
}

/**
 * @param warn receives what has no effect.
 * @throws Error with every problem, each with the path of its field.
 */
export function readAuthorizationFile(text: string, warn: (problem: string) => void): readonly WebhookSettings[] {
  return readKind(
    text,
    AUTHORIZATION_KIND,
    (root) => {
      const authorizers = root.sections('authorizers');
      for (const authorizer of authorizers)
        if (authorizer.text('type') !== 'Webhook')
          authorizer.refuse('value', 'type', 'is only for the API server', '"Webhook"');
      return authorizers.map((authorizer) => readWebhook(authorizer.text('name'), authorizer.inner('webhook')));
    },
    warn,
  );
}

function readWebhook(name: string, webhook: Section): WebhookSettings {
  return {
    name,
    timeout: webhook.milliseconds('timeout') ?? 0,
    authorizedTtl: ttlOf(webhook, 'authorizedTTL', 'cacheAuthorizedRequests'),
    unauthorizedTtl: ttlOf(webhook, 'unauthorizedTTL', 'cacheUnauthorizedRequests'),
    version: webhook.text('subjectAccessReviewVersion') === 'v1beta1' ? 'v1beta1' : 'v1',
    deniesOnFailure: webhook.text('failurePolicy') === 'Deny',
    kubeconfig: webhook.inner('connectionInfo').text('kubeConfigFile') || null,
    conditions: webhook
      .sections('matchConditions')
      .map((condition) => compile(condition.text('expression'), 'request')),
  };
}

/** In milliseconds. */
function ttlOf(webhook: Section, name: string, isCached: string): number {
  return webhook.isGiven(isCached) && !webhook.truth(isCached) ? 0 : (webhook.milliseconds(name) ?? 0);
}
