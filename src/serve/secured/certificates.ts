import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls';
import { FileText } from '../../base/file-text.js';
import type { Log } from '../../base/log.js';
import { certificateBlocks, checkCertificates, endOfValidity } from '../../base/pem.js';
import type { NamedPair, PairFiles, TlsConfig } from '../../config/secured.js';
import type { DoorObserver } from '../door.js';
import { Followed } from './followed.js';
import { SelfSigned, type SelfSignedOptions } from './self-signed.js';

export interface CertificatesOptions extends Omit<SelfSignedOptions, 'directory'> {
  readonly config: TlsConfig;
  readonly log: Log;
  readonly observer: DoorObserver;
}

/** A certificate and what it is served with. */
interface Served {
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
  /** When it ends, in milliseconds since the epoch. */
  readonly endsAt: number;
}

interface NamedServed extends Served {
  readonly names: readonly string[];
}

/** The certificates of a server, one for each of its names and one for all others, which follow their files. */
export class Certificates {
  private readonly main: Followed<Served>;
  private readonly named: readonly Followed<NamedServed>[];

  constructor(private readonly options: CertificatesOptions) {
    const { config } = options;
    const make = ([certificate = '', key = '']: readonly string[]): Served => this.serve(certificate, key);
    this.main =
      config.pair === null
        ? this.follow('--cert-dir', selfSignedReader({ ...options, directory: config.directory }), make)
        : this.follow('--tls-cert-file, --tls-private-key-file', pairReader(config.pair), make);
    this.named = config.named.map((pair) =>
      this.follow('--tls-sni-cert-key', pairReader(pair), ([certificate = '', key = '']) => ({
        ...this.serve(certificate, key),
        names: namesOf(pair, certificate),
      })),
    );
  }

  /** @throws Error that names the flag. */
  async open(): Promise<void> {
    for (const each of [this.main, ...this.named]) await each.open();
    this.options.observer.certificateEnds(this.main.current.endsAt);
  }

  /** Looks at the files again; whether something else is served from now on. */
  async check(): Promise<boolean> {
    let changed = false;
    for (const each of [this.main, ...this.named]) changed = (await each.check()) || changed;
    this.options.observer.certificateEnds(this.main.current.endsAt);
    return changed;
  }

  /** For who names none of the names. */
  get forOthers(): SecureContextOptions {
    return this.main.current.options;
  }

  /** For who asks for a name; null: as for others. The same name twice: the first. */
  forName(name: string): SecureContext | null {
    const wanted = name.toLowerCase();
    const wildcard = wanted.replace(/^[^.]*/, '*');
    const served = this.named.map(({ current }) => current);
    const find = (text: string): NamedServed | undefined => served.find(({ names }) => names.includes(text));
    return (find(wanted) ?? find(wildcard))?.context ?? null;
  }

  private follow<T>(
    flag: string,
    read: () => Promise<readonly string[]>,
    make: (texts: readonly string[]) => T,
  ): Followed<T> {
    const { log, observer } = this.options;
    return new Followed({ flag, read, make, log, observer });
  }

  private serve(certificate: string, key: string): Served {
    checkCertificates(certificate, 'certificate');
    const options = { ...protocolOptions(this.options.config), cert: certificate, key };
    return { options, context: createSecureContext(options), endsAt: endOfValidity(certificate) };
  }
}

/** No session is taken up again: who was verified by an authority that does not count any more has to show its certificate again. */
const SECURE_OPTIONS = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

function protocolOptions({ ciphers, minVersion }: TlsConfig): SecureContextOptions {
  // OpenSSL refuses what these two need unless it is told that they are wanted.
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

/** Names that were given, or else those of the certificate. */
function namesOf({ names }: NamedPair, certificate: string): readonly string[] {
  if (names.length > 0) return names;
  const { subject, subjectAltName = '' } = new X509Certificate(certificateBlocks(certificate)[0] ?? '');
  const alternatives = [...subjectAltName.matchAll(/(?:^|, )DNS:([^\s",]+)/g)].flatMap(([, name = '']) => name);
  const [, commonName] = /^CN=(.+)$/m.exec(subject) ?? [];
  const found = alternatives.length > 0 || commonName === undefined ? alternatives : [commonName];
  return found.map((name) => name.toLowerCase());
}
