import { readTextFileSync } from '../base/bounded-file.js';
import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { EventLimit, ProxyEvent } from '../base/events.js';
import type { Log } from '../base/log.js';
import { TokenBucket } from '../base/token-bucket.js';
import { TokenBuckets } from '../base/token-buckets.js';
import { EVENT_LIMIT_TYPES, EVENT_RATE_KIND } from '../config/kinds/admission.js';
import { readKind } from '../config/tables/document.js';
import type { Section } from '../config/tables/section.js';
import { MAX_CONFIG_BYTES } from '../config/yaml.js';

type LimitType = (typeof EVENT_LIMIT_TYPES)[number];

/** What has a bucket of its own. All events of a process are of one user and one source. */
const KEYS: Readonly<Record<LimitType, (event: ProxyEvent) => string>> = {
  Server: () => '',
  Namespace: ({ regarding }) => regarding.namespace,
  User: () => '',
  SourceAndObject: ({ regarding: { apiVersion, kind, namespace, name } }) =>
    JSON.stringify([apiVersion, kind, namespace, name]),
};

/** What a size of 0 means. */
const DEFAULT_BUCKETS = 4096;

/**
 * Applies an EventRateLimit `Configuration` to the events of this process, as the API server's admission plugin does to those
 * of all clients. Every limit counts each event, and an event over any limit is dropped.
 */
export function readEventLimit(file: string, clock: Clock, log: Log): EventLimit | { readonly problem: string } {
  const origin = `--event-rate-limit-config: ${file}`;
  try {
    const text = readTextFileSync(file, MAX_CONFIG_BYTES);
    const warn = (problem: string): void => {
      log.warn(`${origin}: ${problem}`);
    };
    return readKind(text, [EVENT_RATE_KIND], (section) => limitOf(section, clock), warn);
  } catch (error) {
    return { problem: `${origin}: ${messageOf(error)}` };
  }
}

function limitOf(document: Section, clock: Clock): EventLimit {
  const limits = document.sections('limits').map((limit) => {
    const bucket = (): TokenBucket =>
      new TokenBucket(limit.number('qps') ?? 0, limit.number('burst') ?? 0, () => clock.now());
    const keyOf = KEYS[EVENT_LIMIT_TYPES.find((type) => type === limit.text('type')) ?? 'Server'];
    return { keyOf, buckets: new TokenBuckets(bucket, limit.number('cacheSize') || DEFAULT_BUCKETS) };
  });
  return (event) => !limits.map(({ keyOf, buckets }) => buckets.take(keyOf(event))).includes(false);
}
