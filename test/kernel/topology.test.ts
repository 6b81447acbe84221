// Endpoints by zone and node: behaviour §4.3, E-50, E-51.
import t from 'tap';
import { endpoint, Lab } from '../support/lab/lab.js';
import { node, type Manifest } from '../support/lab/objects.js';
import { addVisitor, checkRows, dualStack, FAMILY_VIEWS, type PodEndpoint } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b'] as const;
const WEB = [{ port: 80, nodePort: 30001 }];

t.test('topology hints', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  await addVisitor(lab);
  const inZone = (zone: string | null): Manifest =>
    node(NODE_NAME, { addresses: Object.values(ADDRESSES.node), ...(zone === null ? {} : { zone }) });
  const proxy = await Proxy.start(t, lab, { node: inZone('zone-1') });
  const zone = (...names: string[]): Partial<PodEndpoint> => ({ zoneHints: names });
  const onNode = (...names: string[]): Partial<PodEndpoint> => ({ nodeHints: names });
  const unready = { ready: false, serving: false };
  type Names = readonly (typeof PODS)[number][];
  const cases: readonly {
    readonly shows: string;
    readonly zone?: string | null;
    readonly endpoints: readonly PodEndpoint[];
    readonly expect: Names;
  }[] = [
    {
      shows: 'E-50 same zone',
      endpoints: [
        { pod: 'pod-a', ...zone('zone-1') },
        { pod: 'remote-a', ...zone('zone-2') },
      ],
      expect: ['pod-a'],
    },
    {
      shows: 'several zones',
      endpoints: [
        { pod: 'pod-a', ...zone('zone-1') },
        { pod: 'remote-a', ...zone('zone-2', 'zone-1') },
        { pod: 'remote-b', ...zone('zone-2') },
      ],
      expect: ['pod-a', 'remote-a'],
    },
    {
      shows: 'SE-01 one without a hint',
      endpoints: [{ pod: 'pod-a', ...zone('zone-1') }, { pod: 'remote-a' }],
      expect: ['pod-a', 'remote-a'],
    },
    {
      shows: 'E-50 none in this zone',
      endpoints: [
        { pod: 'pod-a', ...zone('zone-2') },
        { pod: 'remote-a', ...zone('zone-3') },
      ],
      expect: ['pod-a', 'remote-a'],
    },
    {
      shows: 'hints of unready endpoints do not count',
      endpoints: [
        { pod: 'pod-b', ...zone('zone-1'), ...unready },
        { pod: 'pod-a', ...zone('zone-2') },
        { pod: 'remote-a', ...zone('zone-2') },
      ],
      expect: ['pod-a', 'remote-a'],
    },
    {
      shows: 'E-51 same node',
      endpoints: [
        { pod: 'pod-a', ...zone('zone-1'), ...onNode(NODE_NAME) },
        { pod: 'remote-a', ...zone('zone-1'), ...onNode('node-2') },
      ],
      expect: ['pod-a'],
    },
    {
      shows: 'E-51 other nodes: zone',
      endpoints: [
        { pod: 'remote-b', ...zone('zone-2'), ...onNode('node-3') },
        { pod: 'remote-a', ...zone('zone-1'), ...onNode('node-2') },
      ],
      expect: ['remote-a'],
    },
    {
      shows: 'E-51 other nodes and zones: all',
      endpoints: [
        { pod: 'remote-b', ...zone('zone-2'), ...onNode('node-3') },
        { pod: 'remote-a', ...zone('zone-2'), ...onNode('node-2') },
      ],
      expect: ['remote-a', 'remote-b'],
    },
    {
      shows: 'E-51 back',
      endpoints: [
        { pod: 'pod-a', ...onNode(NODE_NAME) },
        { pod: 'remote-a', ...onNode('node-2') },
      ],
      expect: ['pod-a'],
    },
    {
      shows: 'WA-13 zone changed',
      zone: 'zone-2',
      endpoints: [
        { pod: 'pod-a', ...zone('zone-1') },
        { pod: 'remote-a', ...zone('zone-2') },
      ],
      expect: ['remote-a'],
    },
    {
      shows: 'WA-13 zone gone',
      zone: null,
      endpoints: [
        { pod: 'pod-a', ...zone('zone-1') },
        { pod: 'remote-a', ...zone('zone-2') },
      ],
      expect: ['pod-a', 'remote-a'],
    },
  ];
  for (const { shows, zone: name = 'zone-1', endpoints, expect } of cases) {
    proxy.replaceNode(inZone(name));
    await proxy.apply(
      dualStack('web', { type: 'NodePort', number: 41, externalTrafficPolicy: 'Local', ports: WEB, endpoints }),
    );
    const local = endpoints.filter((each) => each.ready !== false && each.pod.startsWith('pod')).map(({ pod }) => pod);
    await checkRows(
      t,
      lab,
      FAMILY_VIEWS.flatMap((view) => [
        { from: 'pod-c', source: view.visitor, to: endpoint(view.clusterIP(41), 80), expect: view.kept(expect, 80) },
        {
          from: 'client',
          to: view.nodePort(30001),
          expect: local.length === 0 ? 'dropped' : view.kept(local, 80),
        },
      ]),
      shows,
    );
  }
});
