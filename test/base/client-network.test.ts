import t from 'tap';
import { clientOf } from '../../src/base/client-network.js';

t.test('an IPv4 address is one client, and so is an IPv6 network of 64 bits', (t) => {
  const keys = (...addresses: readonly string[]): number => new Set(addresses.map((each) => clientOf(each).key)).size;
  t.equal(keys('192.0.2.1', '::ffff:192.0.2.1'), 1);
  t.equal(keys('::ffff:192.0.2.1', '::ffff:192.0.2.2'), 2, 'they are not of one network');
  t.equal(keys('2001:db8::1', '2001:db8::ffff:0:0:1', 'fe80::1%eth0', 'fe80::2%eth1'), 2);
  t.equal(keys('2001:db8::1', '2001:db8:0:1::1'), 2);
  t.equal(keys('::1', '::2'), 2);
  const near = ['127.0.0.1', '127.9.9.9', '::ffff:127.0.0.1', '::1', '::2', '192.0.2.1'];
  t.same(
    near.filter((each) => clientOf(each).isLoopback),
    near.slice(0, 4),
  );
  t.same(clientOf(undefined), { key: 'address ', address: '', isLoopback: false });
  t.end();
});
