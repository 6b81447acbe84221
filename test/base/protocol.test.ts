import t from 'tap';
import { isPort, parseProtocol, protocolFromNumber, protocolNumber, PROTOCOLS } from '../../src/base/protocol.js';

t.test('protocols are read by name and by IANA number', (t) => {
  t.same(PROTOCOLS.map(protocolNumber), [6, 17, 132]);
  for (const protocol of PROTOCOLS) {
    t.equal(parseProtocol(protocol), protocol);
    t.equal(protocolFromNumber(protocolNumber(protocol)), protocol);
  }
  for (const text of ['tcp', 'ICMP', '', 'TCP ']) t.equal(parseProtocol(text), null);
  for (const number of [0, 1, 58, 256 + 6]) t.equal(protocolFromNumber(number), null);
  t.end();
});

t.test('port numbers are integers from 1 to 65535', (t) => {
  for (const value of [1, 80, 65_535]) t.ok(isPort(value));
  for (const value of [0, -1, 65_536, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) t.notOk(isPort(value));
  t.end();
});
