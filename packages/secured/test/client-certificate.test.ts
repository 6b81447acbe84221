import type { IncomingMessage } from 'node:http';
import { TLSSocket, type PeerCertificate } from 'node:tls';
import t from 'tap';
import { certificateIdentity } from '../src/client-certificate.js';

const END = '2026-12-01T00:00:00Z';
const BEFORE = Date.parse(END) - 1;

/** Requests of one connection, and how often its certificate was read. */
class Client {
  reads = 0;
  private readonly request: IncomingMessage;

  constructor(certificate: object | null, authorized = true) {
    const socket = Object.assign(Object.create(TLSSocket.prototype) as TLSSocket, {
      authorized,
      getPeerCertificate: (): PeerCertificate => {
        this.reads++;
        return certificate as PeerCertificate;
      },
    });
    this.request = { socket } as unknown as IncomingMessage;
  }

  ask(now: number): unknown {
    const identity = certificateIdentity(this.request, now);
    return identity.type === 'user' ? [identity.user.name, ...identity.user.groups] : identity.type;
  }
}

t.test("a connection's client certificate is read once, and expires between its requests", (t) => {
  const client = new Client({ subject: { CN: 'anna', O: ['ops', 'dev'] }, valid_to: END });
  t.same(client.ask(BEFORE), ['anna', 'ops', 'dev']);
  t.same(client.ask(BEFORE), ['anna', 'ops', 'dev']);
  t.equal(client.ask(BEFORE + 2), 'refused');
  t.equal(client.reads, 1);
  const other = new Client({ subject: { CN: 'otto' }, valid_to: END });
  t.same([other.ask(BEFORE), other.reads], [['otto'], 1], 'another connection has its own');
  t.end();
});

t.test('a client certificate without a name gives no user, and one of another authority is refused', (t) => {
  for (const certificate of [null, {}, { subject: {}, valid_to: END }, { subject: { CN: '' }, valid_to: END }]) {
    const client = new Client(certificate);
    t.same([client.ask(BEFORE), client.ask(BEFORE), client.reads], ['unauthenticated', 'unauthenticated', 1]);
  }
  t.equal(new Client({ subject: { CN: 'anna' }, valid_to: END }, false).ask(BEFORE), 'refused');
  t.end();
});
