import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls';
import { FileText } from '../../../src/base/file-text.js';
import type { Log } from '../../../src/base/log.js';
import { certificateBlocks, checkCertificates, endOfValidity, TRUST } from '../../../src/base/pem.js';
import type { PairFiles, TlsConfig } from '../../../src/config/secured.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import { Followed } from './followed.js';
import { SelfSigned, type SelfSignedOptions } from './self-signed.js';

export interface CertificatesOptions extends Omit<SelfSignedOptions, 'directory'> {
  readonly config: TlsConfig;
  /** Authorities of client certificates; null: none is asked for. */
  readonly clientCaFile: string | null;
  readonly log: Log;
  readonly observer: AccessObserver;
}

/** A certificate and its key, which go together. */
interface Pair {
  readonly certificate: string;
  readonly key: string;
  /** The names that it is for. */
  readonly names: readonly string[];
  /** When it ends, in milliseconds since the epoch. */
  readonly endsAt: number;
}

/** What changed. */
export interface Changes {
  readonly contexts: boolean;
  /** A client that was let in by the former ones has to show its certificate again. */
  readonly authorities: boolean;
}

/** The certificates of a server, one for each of its names and one for all others, and whose client certificates it takes. They follow their files. */
export class Certificates {
  private readonly main: Followed<Pair>;
  private readonly named: readonly Followed<Pair>[];
  private readonly authorities: Followed<string> | null;
  private contexts: readonly { readonly names: readonly string[]; readonly context: SecureContext }[] = [];

  constructor(private readonly options: CertificatesOptions) {
    const { config, clientCaFile } = options;
    const make = (texts: readonly string[]): Pair => this.readPair(texts, []);
    this.main =
      config.pair === null
        ? this.follow('--cert-dir', selfSignedReader({ ...options, directory: config.directory }), make)
        : this.follow('--tls-cert-file, --tls-private-key-file', pairReader(config.pair), make);
    this.named = config.named.map((pair) =>
      this.follow('--tls-sni-cert-key', pairReader(pair), (texts) => this.readPair(texts, pair.names)),
    );
    this.authorities =
      clientCaFile === null ? null : this.follow('--client-ca-file', authorityReader(clientCaFile), readAuthorities);
  }

  /** @throws Error that names the flag. */
  async open(): Promise<void> {
    for (const each of [this.authorities, this.main, ...this.named]) await each?.open();
    this.renew();
  }

  /** Looks at the files again. */
  async check(): Promise<Changes> {
    const authorities = (await this.authorities?.check()) ?? false;
    let contexts = authorities;
    for (const each of [this.main, ...this.named]) contexts = (await each.check()) || contexts;
    if (contexts) this.renew();
    return { contexts, authorities };
  }

  /** For who names none of the names. */
  get forOthers(): SecureContextOptions {
    return this.contextOptions(this.main.current);
  }

  /** The certificate for a client that asks for a name; null: the default one. The same name twice: the first. */
  forName(name: string): SecureContext | null {
    const wanted = name.toLowerCase();
    const wildcard = wanted.replace(/^[^.]*/, '*');
    const find = (text: string): SecureContext | undefined =>
      this.contexts.find(({ names }) => names.includes(text))?.context;
    return find(wanted) ?? find(wildcard) ?? null;
  }

  private follow<T>(
    flag: string,
    read: () => Promise<readonly string[]>,
    make: (texts: readonly string[]) => T,
  ): Followed<T> {
    const { log, observer } = this.options;
    return new Followed({ flag, read, make, log, observer });
  }

  private renew(): void {
    this.options.observer.certificateEnds(this.main.current.endsAt);
    this.contexts = this.named.map(({ current }) => ({
      names: current.names,
      context: createSecureContext(this.contextOptions(current)),
    }));
  }

  private contextOptions({ certificate, key }: Pick<Pair, 'certificate' | 'key'>): SecureContextOptions {
    const authorities = this.authorities?.current;
    return {
      ...protocolOptions(this.options.config),
      ...(authorities === undefined ? {} : { ca: authorities, ...TRUST }),
      cert: certificate,
      key,
    };
  }

  private readPair([certificate = '', key = '']: readonly string[], names: readonly string[]): Pair {
    checkCertificates(certificate, 'certificate');
    createSecureContext({ ...protocolOptions(this.options.config), cert: certificate, key });
    return {
      certificate,
      key,
      names: names.length > 0 ? names : namesOf(certificate),
      endsAt: endOfValidity(certificate),
    };
  }
}

function readAuthorities([text = '']: readonly string[]): string {
  checkCertificates(text, 'authorities');
  return text;
}

/** No session is taken up again: who was verified by an authority that does not count any more has to show its certificate again. */
const SECURE_OPTIONS = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

function protocolOptions({ ciphers, minVersion }: TlsConfig): SecureContextOptions {
  // OpenSSL refuses what these two need unless they are requested explicitly.
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1';
  const suites = isOld ? `${ciphers ?? DEFAULT_CIPHERS}:@SECLEVEL=0` : ciphers;
  return {
    minVersion,
    honorCipherOrder: true,
    secureOptions: SECURE_OPTIONS,
    ...(suites === null ? {} : { ciphers: suites }),
  };
}

function pairReader({ certificateFile, keyFile }: PairFiles): () => Promise<readonly string[]> {
  const files = [new FileText(certificateFile), new FileText(keyFile)];
  return () => Promise.all(files.map((file) => file.read()));
}

function selfSignedReader(options: SelfSignedOptions): () => Promise<readonly string[]> {
  const certificate = new SelfSigned(options);
  return () => certificate.read();
}

function authorityReader(path: string): () => Promise<readonly string[]> {
  const file = new FileText(path);
  return async () => [await file.read()];
}

/** The names that a certificate has. */
function namesOf(certificate: string): readonly string[] {
  const { subject, subjectAltName = '' } = new X509Certificate(certificateBlocks(certificate)[0] ?? '');
  const alternatives = [...subjectAltName.matchAll(/(?:^|, )DNS:([^\s",]+)/g)].flatMap(([, name = '']) => name);
  const [, commonName] = /^CN=(.+)$/m.exec(subject) ?? [];
  const found = alternatives.length > 0 || commonName === undefined ? alternatives : [commonName];
  return found.map((name) => name.toLowerCase());
}
