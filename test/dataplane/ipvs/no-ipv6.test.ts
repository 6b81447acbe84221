import t, { type Test } from 'tap';
import { LINK } from '../../../src/dataplane/ipvs/names.js';
import type { Row } from '../../../src/state/rows.js';
import { address, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Where a sysctl disables IPv6 on the mode's link, which then takes no address of it. */

const FIRST = service('first', { clusterIPs: ['10.96.0.1', 'fd00:96::1'], ipFamilies: ['IPv4', 'IPv6'] });
// The second is the node's own, which its link has.
const SECOND = service('second', {
  clusterIPs: ['fd00:96::2'],
  externalIPs: ['2001:db8::1'],
  ports: [{ port: 80, nodePort: 30001 }],
  ipFamilies: ['IPv6'],
});
const ROWS: readonly Row[] = [
  ...NODE_ROWS,
  FIRST,
  SECOND,
  slice('first', [{ address: '10.1.0.1', node: 'other' }]),
  slice('first', [{ address: 'fd00:1::1', node: 'other' }]),
  slice('second', [{ address: 'fd00:1::2', node: 'other' }]),
];

function rigs(): { readonly four: Rig; readonly six: Rig } {
  const four = new Rig();
  const six = new Rig(four.kernel, 'IPv6');
  for (const rig of [four, six]) rig.commit(ROWS);
  return { four, six };
}

const SYSCTL = `the sysctl net.ipv6.conf.${LINK}.disable_ipv6 disables IPv6 there`;
const QUARANTINED = ['[fd00:96::1]:80/TCP', '[fd00:96::2]:80/TCP'];

async function quarantined(t: Test, rig: Rig, full = false): Promise<readonly string[]> {
  const { quarantined } = await rig.sync(full);
  for (const { reason } of quarantined) t.ok(reason.includes('EACCES') && reason.endsWith(SYSCTL), reason);
  return quarantined.map(({ frontend }) => frontend).toSorted();
}

for (const begins of [true, false]) {
  t.test(
    `IPv6 disabled on the link: frontends that need it are quarantined, ${begins ? 'from the start' : 'later'}`,
    async (t) => {
      const { four, six } = rigs();
      const { route, ipvs } = four.kernel.addon;
      if (!begins) for (const rig of [four, six]) await rig.sync();
      route.disableIPv6(LINK, true);
      if (!begins) t.equal(await six.dataplane.addressesDiffer(), true, 'it is seen that they are gone');
      t.same(await quarantined(t, six, !begins), QUARANTINED);
      t.same(await quarantined(t, four, !begins), []);
      t.same(await four.difference(), []);
      t.same([...(route.links.get(LINK) ?? [])], ['10.96.0.1']);
      const served = [...ipvs.services.values()].map(
        ({ service }) => `${(service.address ?? []).length} ${service.port}`,
      );
      t.ok(served.includes('16 30001') && served.includes('16 80') && served.includes('4 80'), served.join());
      for (const rig of [four, six]) {
        t.equal(await rig.dataplane.audit(), false, 'which is no difference');
        t.same((await rig.sync(true)).repairs, []);
      }
      six.commit([slice('second', [{ address: 'fd00:1::3', node: 'other' }])]);
      const sent = await six.during(() => six.sync());
      t.ok(
        sent.some((line) => line.includes('-r [fd00:1::3]:80')),
        sent.join(),
      );
      route.disableIPv6(LINK, false);
      six.now += 120_000;
      t.same(await quarantined(t, six), [], 'it is tried again');
      t.ok(route.links.get(LINK)?.has(address('fd00:96::2')));
      t.same(await six.difference(), []);
    },
  );
}

t.test('the removal of an IPv6 address is not refused when IPv6 is disabled', async (t) => {
  const { six } = rigs();
  await six.sync();
  six.kernel.addon.route.disableIPv6(LINK, true);
  six.commit([], [{ kind: 'Service', namespace: 'default', name: 'first' }]);
  t.same(await quarantined(t, six), []);
  t.same(await quarantined(t, six, true), ['[fd00:96::2]:80/TCP']);
});

t.test('an IPv4 address that may not be added fails the sync, and quarantines no frontend', async (t) => {
  const { four } = rigs();
  const { route, mishaps } = four.kernel.addon;
  const apply = route.addressApply.bind(route);
  route.addressApply = (link, operations) => {
    mishaps.planned.unshift({ errno: 'EACCES', object: 0 });
    return apply(link, operations);
  };
  await t.rejects(four.sync(), /EACCES/);
  route.addressApply = apply;
  t.same(await quarantined(t, four), []);
  t.same(await four.difference(), []);
});
