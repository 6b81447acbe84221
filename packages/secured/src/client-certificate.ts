import type { IncomingMessage } from 'node:http';
import { TLSSocket, type PeerCertificate } from 'node:tls';
import { UNAUTHENTICATED, type Identity } from './user.js';

/** The content of a client certificate: the common name is the user, organizations are groups. The handshake verifies it; it may have ended since. */
export function certificateIdentity({ socket }: IncomingMessage, now: number): Identity {
  if (!(socket instanceof TLSSocket)) return UNAUTHENTICATED;
  const { subject, valid_to: end } = certificateOf(socket);
  if (subject === undefined || end === undefined) return UNAUTHENTICATED;
  if (!socket.authorized) return { type: 'refused', why: 'the client certificate is not one of --client-ca-file' };
  if (now > Date.parse(end)) return { type: 'refused', why: 'the client certificate has expired' };
  const name = texts(subject.CN).at(-1) ?? '';
  if (name === '') return UNAUTHENTICATED;
  return { type: 'user', user: { name, uid: '', groups: texts(subject.O), extra: {} } };
}

type Certificate = Partial<Pick<PeerCertificate, 'subject' | 'valid_to'>>;

const read = new WeakMap<TLSSocket, Certificate>();

/** Read once for each connection: the handshake decides it, and reading takes as long as a small request. */
function certificateOf(socket: TLSSocket): Certificate {
  const known = read.get(socket);
  if (known !== undefined) return known;
  const certificate = (socket.getPeerCertificate() as Certificate | null) ?? {};
  read.set(socket, certificate);
  return certificate;
}

/** A part of a name may be there several times. */
function texts(part: unknown): readonly string[] {
  const parts: readonly unknown[] = Array.isArray(part) ? part : [part];
  return parts.filter((each) => typeof each === 'string');
}
