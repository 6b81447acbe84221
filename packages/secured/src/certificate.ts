import { generateKeyPair, randomBytes, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import {
  bits,
  element,
  integer,
  objectIdentifier,
  octets,
  sequence,
  time,
  truth,
  type Der,
} from '../../../src/base/der.js';
import { addressBytes, type IPAddress } from '../../../src/base/ip.js';
import { distinguishedName, pem, SIGNATURE_ALGORITHM, signed } from '../../../src/base/x509.js';

/** What a certificate is made of (RFC 5280). Times in milliseconds since the epoch. */
interface CertificateFacts {
  readonly commonName: string;
  readonly names: readonly string[];
  readonly addresses: readonly IPAddress[];
  readonly validFrom: number;
  readonly validTo: number;
}

const newKey = promisify(generateKeyPair);

const KEY_USAGE = '2.5.29.15';
const ALTERNATIVE_NAMES = '2.5.29.17';
const BASIC_CONSTRAINTS = '2.5.29.19';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const SERVER_AUTHENTICATION = '1.3.6.1.5.5.7.3.1';
/** Context-specific tags of RFC 5280. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const DNS_NAME = 0x82;
const IP_ADDRESS = 0x87;

/** A new key of P-256 and a certificate for it that it signs itself, as PEM texts. */
export async function selfSigned(
  facts: CertificateFacts,
): Promise<{ readonly certificate: string; readonly key: string }> {
  const { privateKey, publicKey } = await newKey('ec', { namedCurve: 'P-256' });
  const certificate = pem('CERTIFICATE', signed(certificateBody(facts, publicKey), privateKey));
  return { certificate, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

function certificateBody({ commonName, names, addresses, validFrom, validTo }: CertificateFacts, key: KeyObject): Der {
  const name = distinguishedName(commonName);
  const alternatives = [
    ...names.map((each) => element(DNS_NAME, Buffer.from(each))),
    ...addresses.map((each) => element(IP_ADDRESS, addressBytes(each))),
  ];
  return sequence(
    element(VERSION, integer(Buffer.from([2]))),
    // Its first bit is not set, lest it be too long.
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    SIGNATURE_ALGORITHM,
    name,
    sequence(time(validFrom), time(validTo)),
    name,
    key.export({ type: 'spki', format: 'der' }),
    element(
      EXTENSIONS,
      sequence(
        extension(BASIC_CONSTRAINTS, sequence(), true),
        // digitalSignature
        extension(KEY_USAGE, bits(Buffer.from([0x80]), 7), true),
        extension(EXTENDED_KEY_USAGE, sequence(objectIdentifier(SERVER_AUTHENTICATION))),
        extension(ALTERNATIVE_NAMES, sequence(...alternatives)),
      ),
    ),
  );
}

function extension(identifier: string, value: Der, critical = false): Der {
  return sequence(objectIdentifier(identifier), ...(critical ? [truth()] : []), octets(value));
}
