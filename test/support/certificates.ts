// needs: openssl
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  /** What else than its names would tell; `server` for one without alternative names. */
  readonly use?: 'client' | 'server';
  /** How long it is valid from now on. */
  readonly days?: number;
}

const DAYS = 3650;

/** A certificate authority of its own for a test; needs the `openssl` command. */
export class Authority {
  private readonly directory = mkdtempSync(join(tmpdir(), 'pointsman-ca-'));
  private issued = 0;
  readonly own: Issued;

  /** @param expired whether it no longer vouches for anybody. */
  constructor(commonName = 'test authority', expired = false) {
    const extensions = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'];
    this.own = this.create(commonName, extensions, null, DAYS);
    if (!expired) return;
    // `req` makes nothing that has expired already.
    const { certificateFile: file, keyFile } = this.own;
    openssl(['x509', '-in', file, '-signkey', keyFile, '-days', '0', '-out', file]);
  }

  issue({ commonName, alternativeNames = [], use, days = DAYS }: LeafOptions): Issued {
    const named = alternativeNames.length > 0;
    const extensions = [
      'basicConstraints=critical,CA:FALSE',
      `extendedKeyUsage=${(use ?? (named ? 'server' : 'client')) === 'client' ? 'clientAuth' : 'serverAuth'}`,
      ...(named ? [`subjectAltName=${alternativeNames.join(',')}`] : []),
    ];
    return this.create(commonName, extensions, this.own, days);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  private create(commonName: string, extensions: readonly string[], issuer: Issued | null, days: number): Issued {
    const base = join(this.directory, String(this.issued++));
    const certificateFile = `${base}.crt`;
    const keyFile = `${base}.key`;
    const by = issuer === null ? [] : ['-CA', issuer.certificateFile, '-CAkey', issuer.keyFile];
    const added = extensions.flatMap((extension) => ['-addext', extension]);
    const subject = ['-subj', `/CN=${commonName}`, '-days', String(days)];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile];
    openssl(['req', '-x509', ...key, ...by, '-out', certificateFile, ...subject, ...added]);
    const read = (file: string): string => readFileSync(file, 'utf8');
    return { certificateFile, keyFile, certificate: read(certificateFile), key: read(keyFile) };
  }
}

/** What signs requests. */
export type SigningFiles = Pick<Issued, 'certificateFile' | 'keyFile'>;

/** Subject of a request for a certificate; null: its own key has not signed it. */
export function requestedSubject(request: string): string | null {
  try {
    const reported = openssl(['req', '-verify', '-noout', '-subject'], request);
    return /subject=(.*)/.exec(reported)?.[1]?.trim() ?? '';
  } catch {
    return null;
  }
}

/**
 * Signs for a client from now on, for so many seconds.
 *
 * @param request null: one of somebody else's.
 */
export function signRequest(
  { certificateFile, keyFile }: SigningFiles,
  request: string | null,
  seconds: number,
): string {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-sign-'));
  const path = (name: string): string => join(folder, name);
  const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`;
  try {
    const lines = [
      ...['[ca]', 'default_ca=own', '[own]', `database=${path('index')}`, `new_certs_dir=${folder}`],
      ...['rand_serial=yes', 'default_md=sha256', 'policy=any', 'x509_extensions=client', 'unique_subject=no'],
      ...['[any]', 'commonName=supplied', 'organizationName=optional'],
      ...['[client]', 'basicConstraints=critical,CA:FALSE', 'extendedKeyUsage=clientAuth', ''],
    ];
    writeFileSync(path('conf'), lines.join('\n'));
    writeFileSync(path('index'), '');
    const other = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path('key')];
    writeFileSync(path('request'), request ?? openssl([...other, '-subj', '/CN=other']));
    const now = Date.now();
    const dates = ['-startdate', time(now), '-enddate', time(now + seconds * 1000)];
    const by = ['-config', path('conf'), '-cert', certificateFile, '-keyfile', keyFile];
    openssl(['ca', '-batch', '-notext', ...by, ...dates, '-in', path('request'), '-out', path('out')]);
    return readFileSync(path('out'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What it says on either output. */
function openssl(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('openssl', args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
  return stdout + stderr;
}
