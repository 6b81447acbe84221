import type { KeyObject } from 'node:crypto';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { isMapping, parseMapping, type Mapping } from '../../../base/mapping.js';
import { cutMessage } from '../../../base/outside-text.js';
import { readTextWithin } from '../../../base/read-text.js';
import type { ApiConnection, ApiResponse } from '../connection.js';
import { requestName, signingRequest, type Subject } from './request.js';

const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const USAGES = ['digital signature', 'client auth'];
const JSON_TYPE = 'application/json';
/** How long the server has to keep a watch open, and when a silent watch is given up. */
const WATCH_SECONDS = 300;
const SILENCE_MS = (WATCH_SECONDS + 30) * 1000;
/** Between the end of a watch and the next look, as a server may end it at once. */
const PAUSE_MS = 1000;
const MAX_BYTES = 1 << 20;

/** The API server does not take a request, or reports nothing about it: the same one may be made again. */
export class SigningError extends Error {
  override readonly name: string = 'SigningError';

  constructor(message: string) {
    super(cutMessage(message));
  }
}

/** A request that will never bring a certificate that can be used: the next one needs another key. */
export class RefusedRequest extends SigningError {
  override readonly name = 'RefusedRequest';

  constructor(
    readonly how: 'denied' | 'failed',
    message: string,
  ) {
    super(message);
  }
}

interface SigningParts {
  readonly api: ApiConnection;
  readonly key: KeyObject;
  readonly signerName: string;
  readonly subject: Subject;
  readonly signal: AbortSignal;
  /** Notified whenever there is something else to wait for, with the command that helps; empty: none does. */
  readonly waiting: (name: string, forWhat: string, command: string) => void;
}

/**
 * The certificate for a key, as PEM text, however long that takes. A request of this key that was made before is gone on with.
 *
 * @throws SigningError, ApiError, the signal's reason
 */
export async function certificateFor(parts: SigningParts): Promise<string> {
  const name = requestName(parts.key, parts.signerName, parts.subject);
  for (;;) {
    await create(parts, name);
    const found = await issued(parts, name);
    if (found !== 'gone') return found.certificate;
  }
}

async function create({ api, key, signerName, subject, signal }: SigningParts, name: string): Promise<void> {
  const request = Buffer.from(signingRequest(key, subject)).toString('base64');
  const body = JSON.stringify({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request, signerName, usages: USAGES },
  });
  const answer = await api.post(PATH, body, { signal, unpaced: true });
  const isThere = answer.status === 409;
  if (answer.status >= 300 && !isThere) throw refusal('make a CertificateSigningRequest', answer.status, answer.body);
}

/** `gone`: the server has deleted the request, as it does with abandoned requests. */
type Found = { readonly certificate: string } | 'gone';

async function issued(parts: SigningParts, name: string): Promise<Found> {
  for (;;) {
    const object = await read(parts, name);
    if (object === null) return 'gone';
    const found = judge(parts, name, object) ?? (await watched(parts, name, object));
    if (found !== 'ended') return found;
    await pause(PAUSE_MS, undefined, { signal: parts.signal });
  }
}

async function read({ api, signal }: SigningParts, name: string): Promise<Mapping | null> {
  const response = await api.get(`${PATH}/${name}`, {}, { accept: JSON_TYPE, signal });
  const body = await textOf(response.body);
  if (response.status === 404) return null;
  if (response.status !== 200) throw refusal('read a CertificateSigningRequest', response.status, body);
  return parsed(body);
}

/** `ended`: the server has ended the watch, and it is to be looked at anew. */
async function watched(parts: SigningParts, name: string, object: Mapping): Promise<Found | 'ended'> {
  const { api } = parts;
  const { resourceVersion } = mapping(object['metadata']);
  const signal = AbortSignal.any([parts.signal, AbortSignal.timeout(SILENCE_MS)]);
  const query = {
    watch: '1',
    fieldSelector: `metadata.name=${name}`,
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    timeoutSeconds: String(WATCH_SECONDS),
  };
  const response = await api.get(PATH, query, { accept: JSON_TYPE, signal });
  if (response.status !== 200)
    throw refusal('watch a CertificateSigningRequest', response.status, await textOf(response.body));
  for await (const event of eventsOf(response)) {
    if (event['type'] === 'DELETED') return 'gone';
    // Such as a version that the server has forgotten: the next look is a new beginning.
    if (event['type'] === 'ERROR') return 'ended';
    const found = judge(parts, name, mapping(event['object']));
    if (found !== null) return found;
  }
  return 'ended';
}

/** The certificate of a request; null: not yet. @throws RefusedRequest */
function judge({ signerName, waiting }: SigningParts, name: string, object: Mapping): Found | null {
  const { conditions, certificate } = mapping(object['status']);
  const isTrue = (type: string): Mapping | undefined =>
    (Array.isArray(conditions) ? conditions : [])
      .filter(isMapping)
      .find((condition) => condition['type'] === type && condition['status'] !== 'False');
  for (const [type, how] of [
    ['Denied', 'denied'],
    ['Failed', 'failed'],
  ] as const) {
    const condition = isTrue(type);
    if (condition !== undefined) throw new RefusedRequest(how, `the request was ${how}${reasonOf(condition)}`);
  }
  if (typeof certificate === 'string' && certificate !== '')
    return { certificate: Buffer.from(certificate, 'base64').toString() };
  if (isTrue('Approved') === undefined) waiting(name, 'its approval', `kubectl certificate approve ${name}`);
  else waiting(name, `signer ${signerName} to sign it, now that it is approved`, '');
  return null;
}

function reasonOf({ reason, message }: Mapping): string {
  const words = [reason, message].filter((word) => typeof word === 'string' && word !== '');
  return words.length === 0 ? '' : `: ${words.join(': ')}`;
}

function refusal(what: string, status: number, body: string): SigningError {
  const { message } = parsed(body);
  const reason = typeof message === 'string' && message !== '' ? `: ${message}` : '';
  if (status === 401)
    return new SigningError(`who wants to ${what} is not known to the API server, or not any more (401)${reason}`);
  if (status === 403) return new SigningError(`the API server does not let us ${what} (403)${reason}`);
  return new SigningError(`the API server refuses to let us ${what} (${status})${reason}`);
}

async function* eventsOf({ body }: ApiResponse): AsyncGenerator<Mapping> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_BYTES) throw new SigningError('the API server sends an event without an end');
    for (const line of lines) yield parsed(line);
  }
}

function textOf(body: Readable): Promise<string> {
  return readTextWithin(body, MAX_BYTES, () => new SigningError('the API server sends an answer without an end'));
}

/** What is no object of JSON has no fields. */
function parsed(text: string): Mapping {
  return parseMapping(text) ?? {};
}

function mapping(value: unknown): Mapping {
  return isMapping(value) ? value : {};
}
