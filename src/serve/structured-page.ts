import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseAccept } from '../base/accept.js';
import { yamlLibrary } from '../base/yaml-library.js';
import { answerText } from './http-endpoint.js';
import { answerWhole } from './listener.js';

/** The name under which clients know a node proxy. */
const COMPONENT = 'kube-proxy';
const GROUP = 'config.k8s.io';
const VERSION = 'v1beta1';
const DEPRECATED_VERSION = 'v1alpha1';

/** A page about the process, for people as text and for programs as an object (KEP-4827, KEP-4828). */
export interface StructuredPage {
  readonly kind: 'Flagz' | 'Statusz';
  /** One line each. */
  readonly lines: () => readonly string[];
  /** The object's fields beside kind, apiVersion and metadata. */
  readonly fields: () => Readonly<Record<string, unknown>>;
}

type Form =
  { readonly type: 'text' } | { readonly type: 'object'; readonly encoding: 'json' | 'yaml'; readonly version: string };

/**
 * Answers in the form that the request's Accept header names: text by default, an object only where its version is named, as in
 * `application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.
 */
export function answerPage(request: IncomingMessage, response: ServerResponse, page: StructuredPage): void {
  const form = negotiate(request.headers.accept, page.kind);
  if (form === null) {
    const object = `application/json;v=${VERSION};g=${GROUP};as=${page.kind}`;
    answerText(response, 406, `only text/plain, ${object} and the same as application/yaml are served\n`);
    return;
  }
  if (form.type === 'text') {
    answerText(response, 200, textOf(page));
    return;
  }
  const { encoding, version } = form;
  const kind = page.kind;
  const object = { kind, apiVersion: `${GROUP}/${version}`, metadata: { name: COMPONENT }, ...page.fields() };
  const headers = {
    'Content-Type': `application/${encoding}`,
    'X-Content-Type-Options': 'nosniff',
    ...(version === DEPRECATED_VERSION
      ? { Warning: `299 - "${GROUP}/${version} ${kind} is deprecated, use ${GROUP}/${VERSION}"` }
      : {}),
  };
  const text = encoding === 'json' ? JSON.stringify(object) : yamlLibrary().dump(object, { lineWidth: -1 });
  answerWhole(response, 200, headers, text);
}

function textOf({ kind, lines }: StructuredPage): string {
  const warning =
    'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';
  return `\n${COMPONENT} ${kind.toLowerCase()}\n${warning}\n\n${lines()
    .map((line) => `${line}\n`)
    .join('')}`;
}

/** Null when nothing that is accepted can be had. */
function negotiate(accept: string | undefined, kind: StructuredPage['kind']): Form | null {
  for (const { type, parameters, quality } of parseAccept(accept)) {
    if (quality === 0) continue;
    if (['*/*', 'text/*', 'text/plain'].includes(type)) return { type: 'text' };
    const encoding = ENCODINGS.get(type);
    const version = parameters.get('v') ?? '';
    const named = parameters.get('g') === GROUP && parameters.get('as') === kind;
    if (encoding !== undefined && named && [VERSION, DEPRECATED_VERSION].includes(version))
      return { type: 'object', encoding, version };
  }
  return null;
}

const ENCODINGS: ReadonlyMap<string, 'json' | 'yaml'> = new Map([
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
]);
