import t from 'tap';
import { PROXY_FIREWALL_HOOKS } from '../../../src/dataplane/xtables/hooks.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { service, slice } from '../../support/rows.js';
import * as iptables from '../iptables/rig.js';
import * as ipvs from '../ipvs/rig.js';

/** KUBE-PROXY-FIREWALL, which two modes have, and lead to in other words. */

const BALANCER: readonly Row[] = [
  service('web', { clusterIPs: ['10.96.0.9'], loadBalancer: ['192.0.2.3'], sourceRanges: ['203.0.113.0/24'] }),
  slice('web', [{ address: '10.0.3.1', node: 'other' }]),
];
const IPVS_RULE =
  '-m conntrack --ctstate NEW -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL';

function jumps(kernel: FakeIptables): readonly string[] {
  return ['INPUT', 'FORWARD', 'OUTPUT'].flatMap((chain) =>
    (kernel.rules('filter', chain) ?? [])
      .filter((rule) => rule.endsWith('-j KUBE-PROXY-FIREWALL'))
      .map((rule) => `${chain} ${rule}`),
  );
}

function texts(mode: keyof typeof PROXY_FIREWALL_HOOKS): readonly string[] {
  return PROXY_FIREWALL_HOOKS[mode].map(({ chain, text }) => `${chain} ${text}`);
}

function leaveJumps(
  kernel: FakeIptables,
  mode: keyof typeof PROXY_FIREWALL_HOOKS,
  rules: readonly string[],
  flavor: IptablesFlavor = 'nft',
): void {
  const leave = (chains: Map<string, string[]>): void => {
    chains.set('KUBE-SOURCE-RANGES-FIREWALL', []);
    chains.set('KUBE-PROXY-FIREWALL', [...rules]);
    for (const { chain, text } of PROXY_FIREWALL_HOOKS[mode]) chains.get(chain)?.push(text);
  };
  kernel.tamper('filter', leave, flavor);
}

t.test('jumps move from mode ipvs to mode iptables once nat is written', async (t) => {
  const rig = new iptables.Rig();
  leaveJumps(rig.kernel, 'ipvs', [IPVS_RULE]);
  rig.commit([...iptables.NODE_ROWS, ...BALANCER]);
  const sent = await rig.during(() => rig.sync());
  t.same(jumps(rig.kernel), texts('iptables'), 'packets of established connections are not led there any more');
  const firewall = 'chain filter KUBE-PROXY-FIREWALL';
  t.equal(sent.filter((line) => line === firewall).length, 1);
  t.ok(sent.indexOf(firewall) > sent.lastIndexOf('chain nat KUBE-SERVICES'), 'what is not translated is dropped last');
  t.ok(sent.indexOf('chain filter KUBE-FORWARD') < sent.indexOf('chain nat KUBE-SERVICES'), 'all else as ever');
  rig.kernel.tamper('filter', (chains) => chains.delete('KUBE-SOURCE-RANGES-FIREWALL'));
  t.same(await rig.difference(), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'and that is all');
});

t.test('jumps of mode ipvs in the other flavour are removed once the rules are written', async (t) => {
  for (const [own, other] of [
    ['nft', 'legacy'],
    ['legacy', 'nft'],
  ] as const) {
    const rig = new iptables.Rig(new FakeIptables(), 'IPv4', {}, own);
    leaveJumps(rig.kernel, 'ipvs', [IPVS_RULE], other);
    rig.commit([...iptables.NODE_ROWS, ...BALANCER]);
    const sent = await rig.during(() => rig.sync());
    const services = sent.lastIndexOf('chain nat KUBE-SERVICES');
    for (const late of ['chain filter KUBE-PROXY-FIREWALL', 'insert filter FORWARD'])
      t.ok(sent.lastIndexOf(late) > services, `${own}: ${late}`);
    t.equal(sent.filter((line) => line === 'chain filter KUBE-PROXY-FIREWALL').length, 1);
    const listings = rig.kernel.listed.length;
    rig.restart();
    t.same(await rig.during(() => rig.sync()), []);
    t.equal(rig.kernel.listed.length, listings + 1, 'the other flavour is not asked again');
  }
});

t.test('jumps move from mode iptables to mode ipvs', async (t) => {
  const rig = new ipvs.Rig();
  leaveJumps(rig.kernel.programs, 'iptables', []);
  rig.commit([...ipvs.NODE_ROWS, ...BALANCER]);
  await rig.sync();
  t.same(jumps(rig.kernel.programs), texts('ipvs'));
  t.same(await rig.difference(), []);
});
