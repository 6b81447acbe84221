// On which addresses node ports answer: behaviour §4.5 and §10.4.
import t from 'tap';
import { underEmulation, usually } from '../support/extent.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { node } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, type FamilyView, type Row } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES, PREFIXES } from '../support/lab/topology.js';

const TWO = ['pod-a', 'remote-a'] as const;
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
const OBJECTS = [
  ...dualStack('web', {
    type: 'NodePort',
    number: 41,
    ports: PROTOCOLS.map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80, nodePort: 30001 })),
    endpoints: TWO,
  }),
  ...dualStack('empty', { type: 'NodePort', number: 42, ports: [{ port: 80, nodePort: 30002 }], endpoints: [] }),
  ...dualStack('elsewhere', {
    type: 'NodePort',
    number: 43,
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, nodePort: 30003 }],
    endpoints: ['remote-a'],
  }),
];
const nodePorts = 'nodePortAddresses';

/** What the node answers itself where no node port is: it has no listener. */
const NOT_A_NODE_PORT = 'refused';

const VARIANTS: readonly {
  readonly shows: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Whether node ports answer on the node's second address. */
  readonly alternate: Readonly<Record<FamilyView['family'], boolean>>;
  /** Whether they do so on addresses that the node is given later. */
  readonly later: boolean;
  /** Whether their addresses have IPv4's loopback. */
  readonly loopback: boolean;
}[] = [
  {
    shows: 'PF-030, PF-032 primary',
    config: {},
    alternate: { IPv4: false, IPv6: false },
    later: false,
    loopback: false,
  },
  {
    shows: 'PF-031, PF-033 prefixes of both families',
    config: {
      [nodePorts]: [
        PREFIXES.nodes.IPv4,
        PREFIXES.alternates.IPv4,
        PREFIXES.nodes.IPv6,
        `${ADDRESSES.alternate.IPv6}/128`,
        '198.18.0.0/16',
        '2001:db8:18::/64',
        '127.0.0.0/8',
      ],
    },
    alternate: { IPv4: true, IPv6: true },
    later: true,
    loopback: true,
  },
  {
    shows: 'SV-31 prefixes of one family leave the other open',
    config: { [nodePorts]: [PREFIXES.nodes.IPv4] },
    alternate: { IPv4: false, IPv6: true },
    later: false,
    loopback: false,
  },
  {
    shows: 'SV-32 all',
    config: { [nodePorts]: ['0.0.0.0/0', '::/0'] },
    alternate: { IPv4: true, IPv6: true },
    later: true,
    loopback: true,
  },
];

t.test('node ports answer on the configured addresses only', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(
    TWO,
    PROTOCOLS.map((protocol) => [80, protocol]),
  );
  for (const { shows, config, alternate, later, loopback } of underEmulation(
    VARIANTS.slice(0, 3),
    usually(VARIANTS.slice(0, 2), VARIANTS),
  )) {
    await t.test(shows, async (t) => {
      const proxy = await Proxy.start(t, lab, { config, objects: OBJECTS });
      await proxy.consistent();
      await checkRows(
        t,
        lab,
        FAMILY_VIEWS.flatMap((view) => [
          ...PROTOCOLS.flatMap((protocol) => {
            const to = view.nodePort(30001);
            const expect = view.masqueraded(TWO, 80);
            return [
              {
                shows: 'PF-041',
                from: 'pod-b',
                to: endpoint(view.clusterIP(41), 80),
                protocol,
                expect: view.kept(TWO, 80),
              },
              { shows: 'PF-041', from: 'client', to, protocol, expect },
              { shows: 'PF-041', from: 'node', to, protocol, expect },
              { shows: 'PF-041', from: 'pod-b', to, protocol, expect },
            ];
          }),
          ...elsewhere(view, 'alternate', alternate[view.family]),
          {
            shows: 'SV-32, SV-35',
            from: 'node',
            to: endpoint(view.family === 'IPv4' ? '127.0.0.1' : '::1', 30001),
            expect:
              loopback && view.family === 'IPv4' && traitsOf(labMode()).servesLocalhost
                ? view.masqueraded(TWO, 80)
                : NOT_A_NODE_PORT,
          },
          {
            shows: 'PF-109 policy Local, none local',
            from: 'node',
            to: endpoint(view.family === 'IPv4' ? '127.0.0.1' : '::1', 30003),
            expect:
              loopback && view.family === 'IPv4' && traitsOf(labMode()).servesLocalhost
                ? view.masqueraded(['remote-a'], 80)
                : NOT_A_NODE_PORT,
          },
          { shows: 'not a node port', from: 'client', to: view.nodePort(30009), expect: NOT_A_NODE_PORT },
          { shows: 'another machine', from: 'pod-b', to: view.nodePort(30001, 'remote-node'), expect: NOT_A_NODE_PORT },
        ]),
      );
      const added = { IPv4: '198.18.7.7', IPv6: '2001:db8:18::7' };
      await Promise.all(FAMILY_VIEWS.map((view) => lab.addAddress('node', 'lo', prefix(added[view.family]))));
      const rows = FAMILY_VIEWS.map((view): Row => {
        // Where one family is open because the list only has prefixes of the other.
        const answers = later || (alternate[view.family] && !alternate.IPv4);
        const expect = answers ? view.masqueraded(TWO, 80) : NOT_A_NODE_PORT;
        return { shows: 'address added live', from: 'node', to: endpoint(added[view.family], 30001), expect };
      });
      if (traitsOf(labMode()).syncsAddresses) await answered(lab, rows);
      await checkRows(t, lab, rows);
      await Promise.all(FAMILY_VIEWS.map((view) => lab.removeAddress('node', 'lo', prefix(added[view.family]))));
      // A process would find them gone, and not know whose the virtual services are.
      if (traitsOf(labMode()).syncsAddresses)
        await eventually('addresses without virtual services', async () =>
          (await proxy.rules()).match(/(?:198\.18\.7\.7|2001:db8:18::7)\]?:30001/) === null ? true : null,
        );
    });
  }
});

/** Waits until packets meet what is expected of them. */
async function answered(lab: Lab, rows: readonly Row[]): Promise<void> {
  for (const { from, to, expect } of rows)
    await eventually(`${expect} from ${to}`, async () =>
      expect.startsWith(await lab.verdict({ from, to, timeoutMs: 250 }, { most: 1 })) ? true : null,
    );
}

/** The three Services' node ports on another address of the node. */
function elsewhere(view: FamilyView, name: keyof typeof ADDRESSES, answers: boolean): readonly Row[] {
  const from = 'client';
  return [
    { from, to: view.nodePort(30001, name), expect: answers ? view.masqueraded(TWO, 80) : NOT_A_NODE_PORT },
    { from, to: view.nodePort(30002, name), expect: 'refused' },
    { from, to: view.nodePort(30003, name), expect: answers ? 'dropped' : NOT_A_NODE_PORT },
  ];
}

function prefix(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`;
}

t.test("node ports follow the node's primary address, and bindAddress", async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(
    TWO,
    PROTOCOLS.map((protocol) => [80, protocol]),
  );
  const rows = (answering: keyof typeof ADDRESSES): Row[] =>
    FAMILY_VIEWS.flatMap((view) =>
      (['node', 'alternate'] as const).map((name) => ({
        from: 'client',
        to: view.nodePort(30001, name),
        expect: name === answering ? view.masqueraded(TWO, 80) : NOT_A_NODE_PORT,
      })),
    );
  const other = node(NODE_NAME, { addresses: Object.values(ADDRESSES.alternate) });
  await t.test('node ports follow the addresses of the Node', async (t) => {
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, node: other });
    await checkRows(t, lab, rows('alternate'), 'second address is primary');
    proxy.replaceNode(node(NODE_NAME, { addresses: Object.values(ADDRESSES.node) }));
    await proxy.apply(OBJECTS);
    await checkRows(t, lab, rows('node'), 'changed live');
  });
  await t.test('node ports follow bindAddress', async (t) => {
    const proxy = await Proxy.start(t, lab, {
      objects: OBJECTS,
      config: { bindAddress: ADDRESSES.alternate.IPv4, healthzBindAddress: '0.0.0.0:10256' },
    });
    await proxy.consistent();
    await checkRows(t, lab, [
      ...rows('alternate').filter(({ to }) => !to.includes('[')),
      ...rows('node').filter(({ to }) => to.includes('[')),
    ]);
  });
});
