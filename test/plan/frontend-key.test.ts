import t from 'tap';
import { PROTOCOLS } from '../../src/base/protocol.js';
import { frontendKey, parseFrontendKey } from '../../src/plan/frontend-key.js';
import { address } from '../support/rows.js';

t.test('frontend keys have address, port and protocol', (t) => {
  for (const host of ['10.96.0.10', 'fd00::1', '::', null]) {
    for (const protocol of PROTOCOLS) {
      for (const port of [1, 80, 65_535]) {
        const parts = { address: host === null ? null : address(host), port, protocol };
        t.same(parseFrontendKey(frontendKey(parts.address, port, protocol)), parts);
      }
    }
  }
  t.equal(frontendKey(address('10.96.0.10'), 53, 'UDP'), '10.96.0.10:53/UDP');
  t.equal(frontendKey(address('fd00::1'), 53, 'UDP'), '[fd00::1]:53/UDP');
  t.equal(frontendKey(null, 30000, 'SCTP'), 'nodeport:30000/SCTP');
  t.end();
});

t.test('a malformed frontend key is refused', (t) => {
  const wrong = [
    ...['', ':', '/', ':80/TCP', '10.96.0.10:80', '10.96.0.10/TCP', '10.96.0.10:80/tcp', '10.96.0.10:80/ICMP'],
    ...['10.96.0.10:0/TCP', '10.96.0.10:65536/TCP', '10.96.0.10:x/TCP', '10.96.0.10:/TCP', '10.96.0.10:080/TCP'],
    ...['10.96.0.010:80/TCP', '[10.96.0.10]:80/TCP', 'fd00::1:80/TCP', '[FD00::1]:80/TCP', '[fd00::1:80/TCP'],
    ...['nodeports:80/TCP', '[nodeport]:80/TCP', 'nodeport:1e3/TCP', 'nodeport:-1/TCP', 'nodeport: 80/TCP'],
  ];
  for (const key of wrong) t.throws(() => parseFrontendKey(key), TypeError, JSON.stringify(key));
  t.end();
});
