// Which sources the rules admit, for prefixes of every length.
import t from 'tap';
import {
  addressBytes,
  addressFromBytes,
  addressLength,
  prefixRange,
  type Family,
  type IPAddress,
} from '../../../src/base/ip.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { address, prefix, service, slice } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

const FAMILIES = {
  IPv4: { client: '203.0.113.77', clusterIP: '10.96.0.13', loadBalancer: '192.0.2.13', endpoint: '10.0.4.1' },
  IPv6: {
    client: '2001:db8:203::77',
    clusterIP: 'fd00:96::13',
    loadBalancer: '2001:db8:2::13',
    endpoint: 'fd00:10::1',
  },
} as const;

/** The address with one bit changed. */
function other(of: IPAddress, bit: number): IPAddress {
  const bytes = addressBytes(of);
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7));
  return addressFromBytes(bytes);
}

for (const family of ['IPv4', 'IPv6'] as const satisfies readonly Family[]) {
  const { client, clusterIP, loadBalancer, endpoint } = FAMILIES[family];
  const source = address(client);

  t.test(`${family}: a prefix of each length admits its own sources only`, async (t) => {
    const rig = new Rig(new FakeKernel(compiler), family);
    const isAdmitted = (from: IPAddress): boolean =>
      rig.kernel.trace(
        { source: from, destination: address(loadBalancer), port: 80, protocol: 'TCP', inputInterface: 'eth0' },
        [],
      ).type !== 'drop';
    rig.commit([...NODE_ROWS, slice('web', [{ address: endpoint }])]);
    for (let length = 1; length <= 8 * addressLength(family); length++) {
      const range = prefix(`${addressFromBytes(prefixRange(prefix(`${client}/${length}`))[0])}/${length}`);
      const ranged = { clusterIPs: [clusterIP], loadBalancer: [loadBalancer], sourceRanges: [range] };
      rig.commit([service('web', ranged)]);
      await rig.sync();
      t.ok(isAdmitted(source), `${range} admits ${source}`);
      if (length < 8 * addressLength(family)) t.ok(isAdmitted(other(source, length)), `${range} admits its other half`);
      t.notOk(isAdmitted(other(source, length - 1)), `${range} does not admit the prefix beside it`);
    }
    t.same(await rig.difference(), []);
    rig.restart();
    t.same(await rig.during(() => rig.sync()), [], 'a restart finds it');
  });
}
