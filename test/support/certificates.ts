import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate and its key, as files and as text. */
export interface Issued {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly certificate: string;
  readonly key: string;
}

export interface LeafOptions {
  /** For a client its user name. */
  readonly commonName: string;
  /** `DNS:name` or `IP:address`; none for a client. */
  readonly alternativeNames?: readonly string[];
}

const DAYS = '3650';

/** A certificate authority of its own for a test; needs the `openssl` command. */
export class Authority {
  private readonly directory = mkdtempSync(join(tmpdir(), 'pointsman-ca-'));
  private issued = 0;
  readonly own: Issued;

  constructor(commonName = 'test authority') {
    this.own = this.create(commonName, ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'], null);
  }

  issue({ commonName, alternativeNames = [] }: LeafOptions): Issued {
    const client = alternativeNames.length === 0;
    const extensions = [
      'basicConstraints=critical,CA:FALSE',
      `extendedKeyUsage=${client ? 'clientAuth' : 'serverAuth'}`,
      ...(client ? [] : [`subjectAltName=${alternativeNames.join(',')}`]),
    ];
    return this.create(commonName, extensions, this.own);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  private create(commonName: string, extensions: readonly string[], issuer: Issued | null): Issued {
    const base = join(this.directory, String(this.issued++));
    const certificateFile = `${base}.crt`;
    const keyFile = `${base}.key`;
    const by = issuer === null ? [] : ['-CA', issuer.certificateFile, '-CAkey', issuer.keyFile];
    const added = extensions.flatMap((extension) => ['-addext', extension]);
    const subject = ['-subj', `/CN=${commonName}`, '-days', DAYS];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile];
    execFileSync('openssl', ['req', '-x509', ...key, ...by, '-out', certificateFile, ...subject, ...added], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const read = (file: string): string => readFileSync(file, 'utf8');
    return { certificateFile, keyFile, certificate: read(certificateFile), key: read(keyFile) };
  }
}
