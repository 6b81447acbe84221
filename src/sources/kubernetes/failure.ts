import { messageOf } from '../../base/error-message.js';
import { cutMessage } from '../../base/outside-text.js';
import { CodecError, TruncatedError } from './codec/errors.js';
import type { ApiStatus } from './codec/events.js';
import { ApiError } from './connection.js';

/**
 * Why a request or its stream came to nothing, by what is to be done about it.
 *
 * - `expired`: the version is gone from the server's memory (410)
 * - `ahead`: the server has not seen the version, having lost some of its own
 * - `throttled`: 429
 * - `unauthorized`: 401, after the transport has refreshed the credentials once
 * - `forbidden`: 403
 * - `missing`: 404
 * - `rejected`: the request itself is refused (400, 422, an encoding we do not read, …)
 * - `unavailable`: no connection, a broken one, 5xx
 * - `silent`: no byte for too long
 * - `truncated`: a list or the initial events ended early
 * - `undecodable`: bytes that make no sense
 */
export const FAILURE_KINDS = [
  'expired',
  'ahead',
  'throttled',
  'unauthorized',
  'forbidden',
  'missing',
  'rejected',
  'unavailable',
  'silent',
  'truncated',
  'undecodable',
] as const;

export type FailureKind = (typeof FAILURE_KINDS)[number];

export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';

  /**
   * @param message may hold text of the server's; it is cut.
   * @param retryAfterMs what the server asked us to wait; null when it asked nothing.
   */
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly retryAfterMs: number | null = null,
  ) {
    super(cutMessage(message));
  }
}

/** What an error answer, or an ERROR event in a watch, means. `code` is the answer's status, 0 for an event. */
export function failureOfStatus(code: number, status: ApiStatus | null, retryAfterMs: number | null): SourceFailure {
  const effective = status === null || status.code === 0 ? code : status.code;
  const text = status === null || status.message === '' ? `status ${effective}` : `${effective}: ${status.message}`;
  const seconds = status?.retryAfterSeconds ?? null;
  return new SourceFailure(
    kindOfStatus(effective, status),
    text,
    retryAfterMs ?? (seconds === null ? null : seconds * 1000),
  );
}

function kindOfStatus(code: number, status: ApiStatus | null): FailureKind {
  if (status !== null && tooLargeVersion(status)) return 'ahead';
  if (code === 410 || status?.reason === 'Expired' || status?.reason === 'Gone') return 'expired';
  if (code === 429) return 'throttled';
  if (code === 401) return 'unauthorized';
  if (code === 403) return 'forbidden';
  if (code === 404) return 'missing';
  return code >= 400 && code < 500 ? 'rejected' : 'unavailable';
}

/** Servers before 1.17 name no cause. */
function tooLargeVersion(status: ApiStatus): boolean {
  return status.causes.includes('ResourceVersionTooLarge') || /too large resource version/i.test(status.message);
}

/** Whatever was thrown while a response was asked for or read. */
export function failureOf(error: unknown): SourceFailure {
  if (error instanceof SourceFailure) return error;
  if (error instanceof TruncatedError) return new SourceFailure('truncated', error.message);
  if (error instanceof CodecError) return new SourceFailure('undecodable', error.message);
  if (error instanceof ApiError) return new SourceFailure('unavailable', error.message);
  return new SourceFailure('unavailable', messageOf(error));
}
