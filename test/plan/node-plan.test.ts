import t from 'tap';
import { FAMILIES, type Family } from '../../src/base/ip.js';
import { nodeFacts, sameFacts, type PlanSettings } from '../../src/plan/facts.js';
import { planNode } from '../../src/plan/node-plan.js';
import type { NodePlan } from '../../src/plan/types.js';
import type { NodeRow, ServiceCIDRRow } from '../../src/state/rows.js';
import { planSettings } from '../support/plan-settings.js';
import { address, node, nodePortAddresses, prefix, serviceCIDR } from '../support/rows.js';

const BOTH = node('me', ['192.168.0.2', '192.168.1.2', '2001:db8::2', '2001:db8::3'], {
  podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64', '10.99.0.0/24'],
});

function plan(
  family: Family,
  settings: Partial<PlanSettings>,
  row: NodeRow | undefined = BOTH,
  cidrs: readonly ServiceCIDRRow[] = [],
): NodePlan {
  return planNode(family, planSettings(settings), row, cidrs);
}

const UNKNOWN = node('me');

t.test('ST-14, ST-20: the node addresses are those of the Node, or bindAddress', (t) => {
  const addresses = (settings: Partial<PlanSettings>, row: NodeRow | undefined): unknown =>
    nodeFacts(planSettings(settings), row).addresses;
  t.same(addresses({}, BOTH), { IPv4: '192.168.0.2', IPv6: '2001:db8::2' }, 'the first of each family');
  t.same(addresses({}, node('me', ['2001:db8::2'])), { IPv4: null, IPv6: '2001:db8::2' });
  t.same(addresses({}, undefined), { IPv4: null, IPv6: null });
  t.same(addresses({ bindAddress: address('1.2.3.4') }, BOTH), { IPv4: '1.2.3.4', IPv6: '2001:db8::2' });
  t.same(addresses({ bindAddress: address('fd00::9') }, BOTH), { IPv4: '192.168.0.2', IPv6: 'fd00::9' });
  t.same(addresses({ bindAddress: address('1.2.3.4') }, undefined), { IPv4: '1.2.3.4', IPv6: null });
  t.same(addresses({ bindAddress: address('::') }, BOTH), { IPv4: '192.168.0.2', IPv6: '2001:db8::2' });
  t.end();
});

t.test('a changed node plan names the families whose Services are planned anew', (t) => {
  const facts = nodeFacts(planSettings(), BOTH);
  const anew = (fields: Partial<NodeRow>): readonly Family[] => {
    const others = nodeFacts(planSettings(), { ...BOTH, ...fields });
    return FAMILIES.filter((family) => !sameFacts(family, facts, others));
  };
  t.same(anew({}), []);
  t.same(anew({ podCIDRs: [], eligible: false }), [], 'pod CIDRs and eligibility are no business of a Service');
  t.same(anew({ addresses: [...BOTH.addresses, address('9.9.9.9')] }), [], 'nor are further addresses');
  t.same(anew({ zone: 'a' }), ['IPv4', 'IPv6']);
  t.same(anew({ addresses: BOTH.addresses.slice(1) }), ['IPv4']);
  t.same(anew({ addresses: BOTH.addresses.slice(0, 2) }), ['IPv6']);
  t.end();
});

t.test('ST-21, SV-31: node port addresses follow the configuration', (t) => {
  const prefixes = (family: Family, configured: readonly string[], row?: NodeRow): unknown =>
    plan(family, { nodePortAddresses: nodePortAddresses(configured) }, row).nodePortPrefixes;
  t.same(prefixes('IPv4', ['primary']), ['192.168.0.2/32']);
  t.same(prefixes('IPv6', ['primary']), ['2001:db8::2/128']);
  t.equal(prefixes('IPv6', ['primary'], node('me', ['192.168.0.2'])), null, 'a family without address: all');
  t.equal(prefixes('IPv4', ['primary'], UNKNOWN), null);
  t.equal(prefixes('IPv4', ['primary'], node('me', ['127.0.0.1'])), null, 'loopback is skipped');
  t.equal(prefixes('IPv6', ['primary'], node('me', ['::1'])), null);
  t.same(plan('IPv4', { bindAddress: address('10.1.1.1') }).nodePortPrefixes, ['10.1.1.1/32']);
  t.equal(prefixes('IPv4', []), null);
  t.same(prefixes('IPv4', ['192.168.1.0/24', '192.168.0.0/24', '2001:db8::/64', '192.168.1.0/24']), [
    '192.168.0.0/24',
    '192.168.1.0/24',
  ]);
  t.same(prefixes('IPv6', ['192.168.1.0/24', '2001:db8::/64']), ['2001:db8::/64']);
  t.equal(prefixes('IPv6', ['192.168.1.0/24']), null, 'the other family only: all');
  t.equal(prefixes('IPv4', ['192.168.0.0/24', '0.0.0.0/0']), null);
  t.same(prefixes('IPv4', ['192.168.0.0/24', '::/0']), ['192.168.0.0/24']);
  const both = ['primary', '127.0.0.0/8', '::1/128'];
  t.same(prefixes('IPv4', both), ['127.0.0.0/8', '192.168.0.2/32']);
  t.same(prefixes('IPv6', both), ['2001:db8::2/128', '::1/128']);
  t.same(prefixes('IPv6', both, node('me', ['192.168.0.2'])), ['::1/128']);
  t.equal(prefixes('IPv6', ['primary', '10.0.0.0/8'], node('me', ['192.168.0.2'])), null, 'neither: all');
  t.equal(prefixes('IPv4', ['primary', '0.0.0.0/0']), null);
  t.end();
});

t.test('SV-32, SV-35: node ports answer on loopback if configured', (t) => {
  const opens = (configured: readonly string[], family: Family = 'IPv4', row?: NodeRow): boolean =>
    plan(
      family,
      {
        nodePortAddresses: nodePortAddresses(configured),
        traits: {
          guardsClusterAddresses: false,
          guardsServiceAddresses: false,
          prefersLocal: false,
          retriesAttempts: 'none',
          servesLocalhost: true,
          listensOnLocalhost: false,
          balancesOnly: false,
        },
      },
      row,
    ).nodePortsOnLoopback;
  t.ok(opens([]));
  t.notOk(opens([], 'IPv6'));
  t.ok(opens(['2001:db8::/64']), 'the other family only: all');
  t.ok(opens(['10.0.0.0/8', '0.0.0.0/0']));
  t.ok(opens(['127.0.0.1/32']));
  t.ok(opens(['126.0.0.0/7']));
  t.notOk(opens(['10.0.0.0/8']));
  t.notOk(opens(['primary']));
  for (const row of [UNKNOWN, node('me', ['2001:db8::2']), node('me', ['127.0.0.1'])])
    t.notOk(opens(['primary'], 'IPv4', row), 'every local address, but never loopback');
  t.ok(opens(['primary', '127.0.0.0/8']));
  t.notOk(opens(['primary', '10.0.0.0/8']));
  t.notOk(opens(['primary', '2001:db8::/64'], 'IPv4', UNKNOWN));
  t.notOk(plan('IPv4', { nodePortAddresses: [] }).nodePortsOnLoopback, 'not in a mode that does not serve it');
  t.end();
});

t.test('SV-36: the process listens on loopback where a prefix names it and the mode has no rules for it', (t) => {
  const listens = (family: Family, configured: readonly string[], listensOnLocalhost = true): unknown => {
    const traits = { ...planSettings().traits, listensOnLocalhost };
    return plan(family, { nodePortAddresses: nodePortAddresses(configured), traits }).nodePortListener;
  };
  t.equal(listens('IPv4', ['127.0.0.0/8']), '127.0.0.1');
  t.equal(listens('IPv4', ['primary', '127.0.0.1/32']), '127.0.0.1');
  t.equal(listens('IPv6', ['primary', '::1/128']), '::1');
  t.equal(listens('IPv6', ['127.0.0.0/8']), null, 'the other family');
  t.equal(listens('IPv4', ['0.0.0.0/0', '127.0.0.0/8']), '127.0.0.1');
  for (const other of ['0.0.0.0/0', '126.0.0.0/7', '127.0.0.2/32', '10.0.0.0/8', 'primary'])
    t.equal(listens('IPv4', [other]), null, other);
  t.equal(listens('IPv4', []), null);
  t.equal(listens('IPv4', ['127.0.0.0/8'], false), null, 'without the feature gate');
  t.end();
});

t.test('ST-34: local detectors follow the configuration', (t) => {
  const detector = (family: Family, localDetection: PlanSettings['localDetection'], row?: NodeRow): unknown =>
    plan(family, { localDetection }, row).localDetector;
  const clusterCIDR = (...prefixes: readonly string[]): PlanSettings['localDetection'] => ({
    type: 'ClusterCIDR',
    prefixes: prefixes.map(prefix),
  });
  const two = clusterCIDR('10.0.0.0/8', '11.0.0.0/8', 'fd00::/48', 'fd01::/48');
  t.same(detector('IPv4', two), { type: 'source-prefix', prefix: '10.0.0.0/8' }, 'the first of the family');
  t.same(detector('IPv6', two), { type: 'source-prefix', prefix: 'fd00::/48' });
  t.equal(detector('IPv6', clusterCIDR('10.0.0.0/8')), null);
  t.equal(detector('IPv4', clusterCIDR()), null);
  const nodeCIDR = { type: 'NodeCIDR' } as const;
  t.same(detector('IPv4', nodeCIDR), { type: 'source-prefix', prefix: '10.244.1.0/24' });
  t.same(detector('IPv6', nodeCIDR), { type: 'source-prefix', prefix: 'fd00:244:1::/64' });
  t.equal(detector('IPv4', nodeCIDR, UNKNOWN), null);
  t.equal(
    planNode('IPv4', planSettings({ localDetection: nodeCIDR }), undefined, []).localDetector,
    null,
    'no Node yet',
  );
  for (const family of ['IPv4', 'IPv6'] as const) {
    t.same(detector(family, { type: 'BridgeInterface', name: 'cni0' }), { type: 'input-interface', name: 'cni0' });
    t.same(detector(family, { type: 'InterfaceNamePrefix', prefix: 'veth' }), {
      type: 'input-interface-prefix',
      prefix: 'veth',
    });
    t.same(
      detector(family, { type: 'InterfaceNamePrefix', prefix: 'vethvethvethvet' }),
      { type: 'input-interface', name: 'vethvethvethvet' },
      'a prefix as long as a name can be',
    );
  }
  t.end();
});

t.test('masquerade bit and masqueradeAll reach the plan', (t) => {
  const mark = (masqueradeBit: number): number => plan('IPv4', { masqueradeBit }).masqueradeMark;
  t.equal(mark(14), 0x4000);
  t.equal(mark(0), 1);
  t.equal(mark(31), 0x8000_0000, 'unsigned');
  t.equal(plan('IPv4', {}).masqueradeAll, false);
  t.equal(plan('IPv4', { masqueradeAll: true }).masqueradeAll, true);
  t.end();
});

t.test('service CIDRs are the family’s own, once, sorted', (t) => {
  const rows = [
    serviceCIDR('b', ['172.30.0.0/16', 'fd00:96::/112']),
    serviceCIDR('a', ['10.96.0.0/12', '172.30.0.0/16']),
  ];
  t.same(plan('IPv4', {}, BOTH, rows).serviceCIDRs, ['10.96.0.0/12', '172.30.0.0/16']);
  t.same(plan('IPv6', {}, BOTH, rows).serviceCIDRs, ['fd00:96::/112']);
  t.same(plan('IPv4', {}).serviceCIDRs, []);
  t.end();
});
