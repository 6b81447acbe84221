import { messageOf } from '../../base/error-message.js';
import { cutMessage } from '../../base/outside-text.js';
import type { UrlSource } from '../../config/config.js';
import { Interner } from '../translate/intern.js';
import { Claims } from './claims.js';
import { isUnsynced, readContent, withLastGood } from './content.js';
import type { HttpAnswer } from './http-get.js';
import { Pacer } from './pacer.js';
import type { ManifestLocation, Dependencies } from './source.js';
import type { RequestHeaders } from './url-access.js';

/** Manifests at a URL, asked for again and again. Only a whole, readable body changes anything. */
export class UrlLocation implements ManifestLocation {
  private readonly names = new Interner();
  private readonly claims = new Claims();
  private readonly stopped = new AbortController();
  private validators: { readonly etag: string | null; readonly lastModified: string | null } | null = null;
  private complete = false;
  /** The body has something that was never read. */
  private unsynced = false;

  constructor(
    private readonly source: UrlSource,
    private readonly dependencies: Dependencies,
  ) {}

  get pollMs(): number {
    return this.dependencies.timing.urlPollMs;
  }

  async round(): Promise<void> {
    let failure: string | null;
    try {
      failure = await this.poll();
    } catch (error) {
      failure = cutMessage(messageOf(error));
    }
    if (this.stopped.signal.aborted) return;
    const { name } = this.source;
    const problems =
      failure === null
        ? []
        : [{ severity: 'error', file: name, document: null, object: null, message: failure } as const];
    this.dependencies.problems.report(`${name} (location)`, problems);
  }

  close(): void {
    this.stopped.abort();
  }

  private async get(): Promise<HttpAnswer> {
    const timeout = new AbortController();
    const { urlTimeoutMs } = this.dependencies.timing;
    const timer = setTimeout(() => {
      timeout.abort();
    }, urlTimeoutMs);
    try {
      const signal = AbortSignal.any([this.stopped.signal, timeout.signal]);
      // With TLS, Node reads all certificates that come with it: 2 MB that manifests in files do without.
      const [{ httpGet }, { readAccess }] = await Promise.all([import('./http-get.js'), import('./url-access.js')]);
      const access = readAccess(this.source);
      const headers = [...access.headers, ...this.conditions()];
      return await httpGet(new URL(this.source.url), { ...access, headers }, signal);
    } catch (error) {
      throw timeout.signal.aborted ? new Error(`did not answer within ${urlTimeoutMs} ms`) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  private conditions(): RequestHeaders {
    const { etag = null, lastModified = null } = this.validators ?? {};
    return [
      ...(etag === null ? [] : [['If-None-Match', etag] as const]),
      ...(lastModified === null ? [] : [['If-Modified-Since', lastModified] as const]),
    ];
  }

  /** Asks once and commits what is new. Null, or why the answer is of no use. */
  private async poll(): Promise<string | null> {
    const { name } = this.source;
    const answer = await this.get();
    if (answer.type === 'unchanged') return null;
    const content = await readContent(answer.text, name, this.names, new Pacer(this.stopped.signal));
    if (this.stopped.signal.aborted) return null;
    // An empty page is no statement about Services; an empty List is.
    if (content.documents === 0 && !content.unidentified) return 'answered with an empty body';
    this.dependencies.problems.report(name, content.problems);
    if (!this.complete && content.unidentified && content.rows.size === 0)
      return 'answered with nothing that can be read';
    this.validators = { etag: answer.etag, lastModified: answer.lastModified };
    const objects = withLastGood(this.claims.objectsOf(name), content);
    this.unsynced = isUnsynced(content, objects, !this.complete || this.unsynced);
    this.claims.replace(name, objects);
    this.commit();
    return null;
  }

  private commit(): void {
    const changes = this.claims.takeChanges();
    this.dependencies.writer.unsynced(this.unsynced);
    if (changes.length > 0) this.dependencies.writer.apply(changes);
    if (this.complete) return;
    this.complete = true;
    this.dependencies.log.info(0, 'Manifests loaded', { location: this.source.name, objects: changes.length });
    this.dependencies.writer.complete();
  }
}
