import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Who a client is by its certificate. */
export interface CertifiedClient {
  /** The certificate's number; empty: there is none that counts. */
  readonly serial: string;
  readonly user: string;
}

export function certifiedClient(socket: Socket): CertifiedClient {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return { serial: '', user: '' };
  const { serialNumber, subject } = socket.getPeerCertificate();
  return { serial: serialNumber, user: String(subject.CN) };
}
