// Which sources reach load balancer addresses: behaviour §10.3, VD-11 to VD-13, SV-06.
import t from 'tap';
import { underEmulation } from '../support/extent.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import {
  checkRows,
  dualStack,
  FAMILY_VIEWS,
  IPV4,
  IPV6,
  type DualStackOptions,
  type Row,
} from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PREFIXES } from '../support/lab/topology.js';

t.test('source ranges restrict clients of load balancers', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(
    ['pod-a'],
    [
      [80, 'TCP'],
      [80, 'UDP'],
      [80, 'SCTP'],
    ],
  );
  const proxy = await Proxy.start(t, lab);
  const ports = (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({
    name: protocol.toLowerCase(),
    protocol,
    port: 80,
    nodePort: 30001,
  }));
  const restricted = (sourceRanges: readonly string[], more: Partial<DualStackOptions> = {}): Manifest[] =>
    dualStack('web', {
      number: 41,
      loadBalancers: [3, 4],
      externals: [11],
      sourceRanges,
      ports,
      endpoints: ['pod-a'],
      ...more,
    });
  const { nodes, admitted } = PREFIXES;
  await proxy.apply(restricted([nodes.IPv4, ` ${admitted.IPv4}`, nodes.IPv6, ` ${admitted.IPv6}`]));
  await checkRows(
    t,
    lab,
    FAMILY_VIEWS.flatMap((view) => {
      const [kept, masqueraded] = [view.kept(['pod-a'], 80), view.masqueraded(['pod-a'], 80)];
      const loadBalancers = [3, 4].map((number) => endpoint(view.loadBalancerIP(number), 80));
      return (['TCP', 'UDP', 'SCTP'] as const).flatMap((protocol): Row[] =>
        [
          { shows: 'PF-020', from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: kept },
          { shows: 'PF-021', from: 'client', to: view.nodePort(30001), expect: masqueraded },
          { shows: 'PF-022', from: 'blocked', to: view.nodePort(30001), expect: masqueraded },
          { shows: 'VD-12', from: 'blocked', to: endpoint(view.externalIP(11), 80), expect: masqueraded },
          ...loadBalancers.flatMap((to) => [
            { shows: 'PF-023', from: 'client', to, expect: masqueraded },
            { shows: 'PF-024', from: 'blocked', to, expect: 'dropped' },
            { shows: 'PF-025', from: 'pod-b', to, expect: 'dropped' },
            { shows: 'PF-026', from: 'node', to, expect: masqueraded },
          ]),
        ].map((row) => ({ ...row, protocol })),
      );
    }),
  );
  for (const view of FAMILY_VIEWS) {
    for (const number of [3, 4]) {
      const address = view.loadBalancerIP(number);
      await lab.addAddress('node', 'lo', `${address}/${view.family === 'IPv4' ? 32 : 128}`);
    }
  }
  await checkRows(
    t,
    lab,
    FAMILY_VIEWS.flatMap((view) =>
      [3, 4].map((number) => {
        const source = view.loadBalancerIP(number);
        const expect = view.masqueraded(['pod-a'], 80);
        return { shows: 'PF-027', from: 'node', source, to: endpoint(source, 80), expect };
      }),
    ),
  );
  // Each list after the one before it, live; who of client (.2) and blocked (.130) gets through.
  const lists: readonly [ranges: readonly string[], client: boolean, blocked: boolean][] = [
    [['203.0.113.0/24', '203.0.113.0/25', '203.0.113.2/32', '2001:db8:203::/64', '2001:db8:203::/65'], true, true],
    [['203.0.113.0/25', '203.0.113.2/32', '2001:db8:203::/65', '2001:db8:203::2/128'], true, false],
    [['203.0.113.2/32', '2001:db8:203::2/128'], true, false],
    [['203.0.113.128/25', '203.0.113.0/25', '2001:db8:203::/65', '2001:db8:203:0:8000::/65'], true, true],
    [['203.0.113.130/32', '203.0.113.128/25', '2001:db8:203:0:8000::/65'], false, true],
    [['203.0.113.128/25', '203.0.113.130/31', '2001:db8:203:0:8000::2/128'], false, true],
    [['203.0.112.0/23', '203.0.113.130/32', '2001:db8::/32', '2001:db8:203:0:8000::2/128'], true, true],
    [['198.18.0.0/15', '2001:db8:1::/48'], false, false],
    [['198.18.0.0/15', '0.0.0.0/0', '::/0'], true, true],
    [['203.0.113.000/025', '2001:db8:203::/65'], true, false],
    [['::ffff:203.0.113.0/121', '2001:db8:203::/65'], true, false],
    [['::ffff:203.0.113.128/121', '2001:db8:203:0:8000::/65'], false, true],
    [['::ffff:203.0.113.0/95'], false, false],
    [['everyone'], false, false],
    [[], true, true],
  ];
  for (const [ranges, client, blocked] of underEmulation(lists.slice(0, 3), lists)) {
    await proxy.apply(restricted(ranges));
    await checkRows(
      t,
      lab,
      FAMILY_VIEWS.flatMap((view) => {
        const expect = (admitted: boolean): string => (admitted ? view.masqueraded(['pod-a'], 80) : 'dropped');
        const to = endpoint(view.loadBalancerIP(3), 80);
        return [
          { from: 'client', to, expect: expect(client) },
          { from: 'blocked', to, expect: expect(blocked) },
          { from: 'client', to, protocol: 'UDP' as const, expect: expect(client) },
        ];
      }),
      `ranges ${ranges.join()}`,
    );
  }
  await proxy.apply(restricted(['198.18.0.0/15']));
  await checkRows(t, lab, [
    { shows: 'SV-06', from: 'client', to: endpoint(IPV4.loadBalancerIP(3), 80), expect: 'dropped' },
    {
      shows: 'SV-06: ranges of one family leave the other open',
      from: 'client',
      to: endpoint(IPV6.loadBalancerIP(3), 80),
      expect: IPV6.masqueraded(['pod-a'], 80),
    },
  ]);
  await proxy.apply(restricted([admitted.IPv4], { endpoints: [] }));
  await checkRows(t, lab, [
    { shows: 'VD-11, no endpoints', from: 'blocked', to: endpoint(IPV4.loadBalancerIP(3), 80), expect: 'dropped' },
    { shows: 'VD-01, admitted', from: 'client', to: endpoint(IPV4.loadBalancerIP(3), 80), expect: 'refused' },
  ]);
});
