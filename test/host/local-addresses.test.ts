import { networkInterfaces } from 'node:os';
import t from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { interfaceMac, localAddresses } from '../../src/host/local-addresses.js';
import { address } from '../support/rows.js';

t.test('the addresses of the host are listed, with their MAC addresses', (t) => {
  const entries = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const macs = new Map(entries.map((entry) => [parseAddress(entry.address), entry.mac]));
  t.same(new Set(localAddresses()), new Set(macs.keys()));
  for (const one of localAddresses())
    t.ok(
      entries.some(({ mac }) => mac === interfaceMac(one)),
      one,
    );
  t.equal(interfaceMac(address('203.0.113.9')), null);
  t.end();
});
