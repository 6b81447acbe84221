import type { PeerCertificate } from 'node:tls';
import t from 'tap';
import { checkServerIdentity, serverIdentity } from '../../src/base/server-identity.js';

/** Whether a certificate with this text of alternative names is for the host; its common name always is. */
function accepts(subjectaltname: string | undefined, host: string): boolean {
  const certificate: Partial<PeerCertificate> = {
    subject: { C: '', ST: '', L: '', O: '', OU: '', CN: host },
    ...(subjectaltname === undefined ? {} : { subjectaltname }),
  };
  return checkServerIdentity(host, certificate as PeerCertificate) === undefined;
}

t.test('server names are matched as crypto/x509 does', (t) => {
  for (const [pattern, host, expected] of [
    ['a.example', 'a.example', true],
    ['A.Example', 'a.eXample', true],
    ['a.example', 'a.example.', true],
    ['a.example.', 'a.example', false],
    ['a.example', 'b.example', false],
    ['*.example', 'a.example', true],
    ['*.a.example', 'b.a.example', true],
    ['*.a.example', 'a.example', false],
    ['*.a.example', 'c.b.a.example', false],
    ['*.a.example', '.a.example', false],
    ['a.*.example', 'a.b.example', false],
    ['a*.example', 'ab.example', false],
    ['*.*.example', 'a.b.example', false],
    ['*', 'a', false],
    ['*', 'a.example', false],
    ['', 'a', false],
    ['_a_.b', '_a_.b', true],
    ['-a.b', '-a.b', true],
    ['*.b', '-a.b', false],
    ['\u212A.example', 'k.example', false],
  ] as const) {
    t.equal(accepts(`DNS:${pattern}`, host), expected, `${pattern} for ${host}`);
  }
  t.end();
});

t.test('the common name never counts, and an IP address only as an IP address', (t) => {
  t.notOk(accepts(undefined, 'a.example'));
  t.notOk(accepts('', 'a.example'));
  t.notOk(accepts('email:a.example, URI:https://a.example', 'a.example'));
  t.notOk(accepts('DNS:192.0.2.1', '192.0.2.1'));
  t.notOk(accepts('IP Address:192.0.2.1', '192.0.2.2'));
  t.ok(accepts('DNS:x, IP Address:192.0.2.1', '192.0.2.1'));
  t.ok(accepts('IP Address:::ffff:192.0.2.1', '192.0.2.1'));
  t.ok(accepts('IP Address:2001:DB8:0:0:0:0:0:1', '2001:db8::1'));
  t.notOk(accepts('IP Address:<invalid length=5>', '192.0.2.1'));
  t.end();
});

t.test('a certificate name with separators cannot pass for several names', (t) => {
  t.notOk(accepts(String.raw`DNS:"x.example, DNS:a.example"`, 'a.example'));
  t.notOk(accepts(String.raw`URI:"https://\", DNS:a.example"`, 'a.example'));
  t.ok(accepts(String.raw`DNS:"x, \"y", DNS:a.example`, 'a.example'));
  t.notOk(accepts('DNS:"a.example', 'a.example'));
  t.notOk(accepts('nonsense', 'nonsense'));
  t.end();
});

t.test('TLS sends and verifies the right server name, and its error lists only a few names', (t) => {
  t.equal(serverIdentity('a.example.').servername, 'a.example');
  t.equal(serverIdentity('[::1]').servername, '');
  t.equal(serverIdentity('a').rejectUnauthorized, true);
  const error = checkServerIdentity('z.example', {
    subjectaltname: Array.from({ length: 90 }, (_, index) => `DNS:${index}.example`).join(', '),
  } as PeerCertificate);
  t.match(error?.message, /is for 0\.example, .*4\.example and 85 more, not for z\.example$/);
  t.end();
});
