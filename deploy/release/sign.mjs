// Signs a release with a key that the releaser has: ECDSA on P-256 with SHA-256 in PEM, as `openssl ecparam -genkey -name prime256v1` or `cosign import-key-pair`
// know it. What is written is what cosign reads: a signature of each file in base64, an envelope with the provenance, and the image's signature as an image.
import { createPrivateKey, createPublicKey, sign as signBytes } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { sha256, tar } from './archive.mjs';
import { signatureLayout } from './oci.mjs';

const STATEMENT = 'application/vnd.in-toto+json';

/** What cosign signs of an image. */
export function imagePayload(repository, digest) {
  const critical = {
    identity: { 'docker-reference': repository },
    image: { 'docker-manifest-digest': digest },
    type: 'cosign container image signature',
  };
  return Buffer.from(JSON.stringify({ critical, optional: null }));
}

/** The bytes that a DSSE envelope's signature is of. */
export function preAuthentication(type, payload) {
  return Buffer.concat([Buffer.from(`DSSEv1 ${type.length} ${type} ${payload.length} `), payload]);
}

/** What signing adds. */
const ADDED = ['provenance.dsse.json', 'image-signature.tar', 'SHA256SUMS.sig', 'signer.pem'];

/** Refuses a folder that has not exactly the files of its checksums, or whose checksums another machine did not get. */
function verify(folder, confirmedFile) {
  const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8');
  if (readFileSync(confirmedFile, 'utf8') !== sums)
    throw new Error(`${confirmedFile}: the other build has other checksums`);
  const listed = new Map([...sums.matchAll(/^([0-9a-f]{64}) {2}(.+)$/gm)].map(([, digest, name]) => [name, digest]));
  for (const [name, digest] of listed)
    if (sha256(readFileSync(join(folder, name))) !== digest) throw new Error(`${name}: has another checksum`);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const name = relative(folder, join(entry.parentPath, entry.name));
    if (!entry.isDirectory() && name !== 'SHA256SUMS' && !ADDED.includes(name) && !listed.has(name))
      throw new Error(`${name}: is not in SHA256SUMS`);
  }
}

/** Signs what `make` wrote into a folder. @param confirmedFile the SHA256SUMS that another machine made of the same commit. */
export function signRelease(folder, keyFile, confirmedFile) {
  verify(folder, confirmedFile);
  const key = createPrivateKey({ key: readFileSync(keyFile), passphrase: process.env.POINTSMAN_KEY_PASSPHRASE });
  if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails.namedCurve !== 'prime256v1')
    throw new Error(`${keyFile}: not an ECDSA key on P-256`);
  const signature = (bytes) => signBytes('sha256', bytes, key).toString('base64');
  const read = (name) => readFileSync(join(folder, name));
  const write = (name, content) => {
    writeFileSync(join(folder, name), content);
  };
  const statement = read('provenance.json');
  const signatures = [{ keyid: '', sig: signature(preAuthentication(STATEMENT, statement)) }];
  const envelope = { payloadType: STATEMENT, payload: statement.toString('base64'), signatures };
  write('provenance.dsse.json', `${JSON.stringify(envelope)}\n`);
  const { repository, digest } = JSON.parse(read('image.json').toString());
  const payload = imagePayload(repository, digest);
  write('image-signature.tar', tar(signatureLayout(digest, payload, signature(payload)), 0));
  write('SHA256SUMS.sig', `${signature(read('SHA256SUMS'))}\n`);
  write('signer.pem', createPublicKey(key).export({ type: 'spki', format: 'pem' }));
}
