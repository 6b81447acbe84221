import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { MAX_PEM_BYTES, readFileWithinSync } from '../../../base/bounded-file.js';
import { messageOf } from '../../../base/error-message.js';
import { FileText } from '../../../base/file-text.js';
import type { Log } from '../../../base/log.js';
import { checkCertificates, endOfValidity, TRUST } from '../../../base/pem.js';
import type { TlsAccess } from './access.js';
import { CredentialsError } from './errors.js';
import type { PemSource } from './kubeconfig.js';

/** How to speak TLS with the API server. One object for as long as keys and certificates stay the same. */
export interface TlsClient {
  readonly context: SecureContext;
  /** For the way to an https proxy: no client certificate, and what the system trusts is trusted too. */
  readonly proxyContext: () => SecureContext;
  readonly serverName: string;
  readonly insecure: boolean;
  /** When our certificate ends, in milliseconds since the epoch; infinite without one. */
  readonly validUntil: number;
}

export interface PemPair {
  readonly certificate: string;
  readonly key: string;
}

/** Authority, certificate and key, read again when their files change; the last ones that go together count until others do. */
export class TlsTrust {
  private readonly authority: Pem | null;
  private readonly pair: { readonly certificate: Pem; readonly key: Pem } | null;
  /** The last of our own files that could be used. */
  private own: Material | null = null;
  private held: { readonly material: Material; readonly client: TlsClient } | null = null;
  private problem = '';

  constructor(
    private readonly access: TlsAccess,
    private readonly env: Readonly<Record<string, string | undefined>>,
    private readonly log: Log,
  ) {
    const { authority, pair } = access;
    this.authority = authority === null ? null : new Pem(authority);
    this.pair = pair && pemPair(pair);
  }

  /**
   * @param given a usable pair that did not come from the kubeconfig; it counts where the kubeconfig has none.
   * @throws CredentialsError when there never was anything usable.
   */
  async current(given: PemPair | null): Promise<TlsClient> {
    const own = await this.lastUsable();
    const material = given === null || this.pair !== null ? own : { ...own, ...given };
    if (this.held === null || !same(this.held.material, material)) {
      this.held = { material, client: this.build(material) };
    }
    return this.held.client;
  }

  private async lastUsable(): Promise<Material> {
    try {
      const own = await this.read();
      if (this.own === null || !same(this.own, own)) this.createContext(own);
      if (this.problem !== '') this.log.info(0, 'TLS keys and certificates can be used again');
      this.problem = '';
      this.own = own;
    } catch (error) {
      const problem = messageOf(error);
      if (this.own === null) throw new CredentialsError(problem, { cause: error });
      if (problem !== this.problem)
        this.log.error(error, 'TLS keys and certificates cannot be used, the last ones stay in use');
      this.problem = problem;
    }
    return this.own;
  }

  private async read(): Promise<Material> {
    const authority = (await this.authority?.read()) ?? '';
    if (this.pair === null) return { authority, certificate: '', key: '' };
    const { certificate, key } = this.pair;
    const text = await certificate.read();
    return { authority, certificate: text, key: key === certificate ? text : await key.read() };
  }

  private build(material: Material): TlsClient {
    const context = this.createContext(material);
    let proxyContext: SecureContext | null = null;
    return {
      context,
      proxyContext: () =>
        (proxyContext ??= createSecureContext({
          ca: [...this.authorities(material), ...systemRoots(this.env)],
          ...TRUST,
        })),
      serverName: this.access.serverName,
      insecure: this.access.insecure,
      validUntil: material.certificate === '' ? Number.POSITIVE_INFINITY : endOfValidity(material.certificate),
    };
  }

  private createContext(material: Material): SecureContext {
    if (this.authority !== null) checkCertificates(material.authority, this.authority.source.field);
    const ca = this.authorities(material);
    if (material.certificate === '') return createSecureContext({ ca: [...ca], ...TRUST });
    return createContext(ca, material, this.pair?.certificate.source.field ?? 'client certificate');
  }

  private authorities({ authority }: Material): readonly string[] {
    return authority === '' ? systemRoots(this.env) : [authority];
  }
}

/** @throws Error naming `field` unless certificate and key can be used together. */
export function checkPair(pair: PemPair, field: string): void {
  createContext([], pair, field);
}

interface Material {
  readonly authority: string;
  /** Empty: none. */
  readonly certificate: string;
  readonly key: string;
}

function same(one: Material, other: Material): boolean {
  return one.authority === other.authority && one.certificate === other.certificate && one.key === other.key;
}

/** A file that holds both is read once for both, lest it be another one in between. */
function pemPair({ certificate, key }: NonNullable<TlsAccess['pair']>): {
  readonly certificate: Pem;
  readonly key: Pem;
} {
  const first = new Pem(certificate);
  const isOne = certificate.type === 'file' && key.type === 'file' && certificate.path === key.path;
  return { certificate: first, key: isOne ? first : new Pem(key) };
}

class Pem {
  private readonly file: FileText | null;

  constructor(readonly source: PemSource) {
    this.file = source.type === 'file' ? new FileText(source.path) : null;
  }

  async read(): Promise<string> {
    if (this.source.type === 'data') return this.source.pem;
    try {
      return (await this.file?.read()) ?? '';
    } catch (error) {
      throw new Error(`${this.source.field}: cannot be read: ${messageOf(error)}`, { cause: error });
    }
  }
}

function createContext(ca: readonly string[], { certificate, key }: PemPair, field: string): SecureContext {
  checkCertificates(certificate, field);
  try {
    return createSecureContext({ ca: [...ca], cert: certificate, key, ...TRUST });
  } catch (error) {
    throw new Error(`${field}: cannot be used with its key: ${messageOf(error)}`, { cause: error });
  }
}

/** Where Linux distributions keep what they trust, Debian's first. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** What this system trusts, or `SSL_CERT_FILE` names; where nothing is found, what comes with Node. */
function systemRoots(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const named = env['SSL_CERT_FILE'] ?? '';
  for (const path of named === '' ? BUNDLES : [named]) {
    try {
      return [readFileWithinSync(path, MAX_PEM_BYTES).toString('latin1')];
    } catch {
      // The next one.
    }
  }
  return rootCertificates;
}
