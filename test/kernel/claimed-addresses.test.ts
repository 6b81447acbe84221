// Addresses that a Service asks for from outside are none of the cluster's own, unless the configuration allows it: docs/differences.md.
// needs: nft, iptables
import t from 'tap';
import { usually } from '../support/extent.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import { configuredMode, type LabMode } from '../support/lab/mode.js';
import { service, serviceCIDR, type Manifest } from '../support/lab/objects.js';
import { checkRows, FAMILY_VIEWS, IPV4, IPV6, slices, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PREFIXES } from '../support/lab/topology.js';

const MODES: readonly LabMode[] = ['nftables', 'iptables-nft'];
const PORT = 8080;

type Answer = (view: FamilyView, mode: LabMode) => string;
const byRival: Answer = (view) => view.masqueraded(['pod-b'], 80);

/** External IPs of a Service, and what its port there answers: refused as they are by default, and allowed. */
const CLAIMS: readonly {
  readonly what: string;
  readonly address: (view: FamilyView) => string;
  readonly refused: Answer;
}[] = [
  {
    what: "another Service's cluster IP, by a port that it does not use",
    address: (view) => view.clusterIP(41),
    refused: (_, mode) => (configuredMode(mode).name === 'iptables' ? 'dropped' : 'refused'),
  },
  { what: 'an unused address of a ServiceCIDR', address: (view) => view.clusterIP(99), refused: () => 'dropped' },
  {
    what: "a pod's address",
    address: (view) => view.address('remote-a'),
    refused: (view) => view.kept(['remote-a'], PORT),
  },
  { what: "the node's own address", address: (view) => view.address('node'), refused: byRival },
  { what: 'an address from outside', address: (view) => view.externalIP(11), refused: byRival },
];

const both = (of: (view: FamilyView) => string): readonly string[] => [of(IPV4), of(IPV6)];

const OBJECTS: readonly Manifest[] = [
  serviceCIDR('kubernetes', [PREFIXES.services.IPv4, PREFIXES.services.IPv6]),
  service('web', { clusterIPs: both((view) => view.clusterIP(41)), ports: [{ port: 80 }] }),
  ...slices('web', ['pod-a'], [{ port: 80 }]),
  service('rival', {
    clusterIPs: both((view) => view.clusterIP(42)),
    ports: [{ port: PORT, targetPort: 80 }],
    externalIPs: CLAIMS.flatMap(({ address }) => both(address)),
  }),
  ...slices('rival', ['pod-b'], [{ port: 80 }]),
];

const SETTINGS: readonly { readonly what: string; readonly flags: readonly string[]; readonly isAllowed: boolean }[] = [
  { what: 'refused by default, and reported', flags: [], isAllowed: false },
  { what: 'served if that is configured', flags: ['--external-ips-in-cluster-ranges'], isAllowed: true },
];

for (const mode of MODES)
  for (const { what, flags, isAllowed } of SETTINGS)
    t.test(`${mode}: external IPs that are the cluster's own addresses are ${what}`, async (t) => {
      const lab = await Lab.start(t);
      await lab.serveAll(['pod-a', 'pod-b'], [[80, 'TCP']]);
      await lab.serveAll(['remote-a'], [[PORT, 'TCP']]);
      const proxy = await Proxy.start(t, lab, { mode, objects: OBJECTS, flags });
      const rows = FAMILY_VIEWS.flatMap((view) => [
        {
          from: 'pod-c',
          to: endpoint(view.clusterIP(41), 80),
          expect: view.kept(['pod-a'], 80),
          shows: 'its own port',
        },
        ...CLAIMS.map(({ what: shows, address, refused }) => {
          const expect = isAllowed ? byRival(view, mode) : refused(view, mode);
          return { from: 'pod-c', to: endpoint(address(view), PORT), expect, shows };
        }),
      ]);
      await checkRows(t, lab, rows);
      const reported = [/not from outside: .* default\/rival: external IP .* is not served/];
      for (const { serviceLimitations } of (await proxy.status()).families)
        t.match(serviceLimitations, isAllowed ? [] : reported);
    });

t.test(
  'without ServiceCIDRs, another cluster IP is known by its Service',
  usually({ skip: 'the plan decides it for every mode' }, {}),
  async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a', 'pod-b'], [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS.slice(1) });
    await checkRows(
      t,
      lab,
      FAMILY_VIEWS.flatMap((view) => [
        { from: 'pod-c', to: endpoint(view.clusterIP(41), PORT), expect: 'refused' },
        { from: 'pod-c', to: endpoint(view.clusterIP(99), PORT), expect: byRival(view, 'nftables') },
      ]),
    );
    for (const { conflicts } of (await proxy.status()).families)
      t.match(conflicts, [/belongs to default\/web, whose cluster IP this address is; default\/rival does not get it/]);
  },
);
