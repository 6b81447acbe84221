// A ruleset that nft saves with our table in it, it loads again: by the nft of this machine and by a newer one, with Services of every kind and with none.
// needs: nft
import t from 'tap';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { endpoint, Lab, patience } from '../support/lab/lab.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, IPV6, podEndpoint, type Row } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PREFIXES } from '../support/lab/topology.js';
import { newerPrograms } from '../support/newer-programs.js';

const plain = {
  ports: [
    { name: 'web', port: 80 },
    { name: 'dns', protocol: 'UDP' as const, port: 80 },
  ],
};
const nodePorts = {
  ports: [
    { name: 'web', port: 80, nodePort: 30001 },
    { name: 'dns', protocol: 'UDP' as const, port: 80, nodePort: 30001 },
  ],
};
const { nodes, admitted } = PREFIXES;
const sourceRanges = [nodes.IPv4, admitted.IPv4, nodes.IPv6, admitted.IPv6];
const WITHOUT_CLIENTS: readonly Manifest[] = [
  ...dualStack('plain', { number: 41, ...plain, endpoints: ['pod-a', 'pod-b'] }),
  ...dualStack('empty', { number: 43, ...plain, endpoints: [] }),
  ...dualStack('restricted', {
    number: 44,
    loadBalancers: [3],
    externals: [11],
    sourceRanges,
    externalTrafficPolicy: 'Local',
    ...nodePorts,
    endpoints: ['pod-a'],
  }),
  ...dualStack('hashed', {
    number: 45,
    ...plain,
    annotations: { 'pointsman.dev/balance': 'hash=address,port' },
    endpoints: ['pod-a', 'pod-b'],
  }),
  ...dualStack('patient', {
    number: 46,
    ...plain,
    annotations: { 'pointsman.dev/connect-retry': '5s' },
    endpoints: ['pod-a', 'pod-b'],
  }),
];
/** Affinity of one family. */
function sticky(views: typeof FAMILY_VIEWS): readonly Manifest[] {
  const fields = {
    loadBalancerIPs: views.map((view) => view.loadBalancerIP(4)),
    affinitySeconds: 100,
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, nodePort: 30002 }],
  } as const;
  return [
    service('sticky', { clusterIPs: views.map((view) => view.clusterIP(42)), ...fields }),
    ...views.map((view) => endpointSlice('sticky', [podEndpoint(view, { pod: 'pod-b' })], [{ port: 80 }])),
  ];
}

const rowsOf = (views: typeof FAMILY_VIEWS, stickyViews: typeof FAMILY_VIEWS): readonly Row[] => [
  ...views.flatMap((view): Row[] => {
    const to = (number: number, port = 80): string => endpoint(view.clusterIP(number), port);
    return [
      { from: 'pod-c', to: to(41), expect: view.kept(['pod-a', 'pod-b'], 80) },
      { from: 'pod-c', to: to(43), expect: 'refused' },
      { from: 'pod-c', to: to(45), expect: view.kept(['pod-a', 'pod-b'], 80) },
      { from: 'pod-c', to: to(46), expect: view.kept(['pod-a', 'pod-b'], 80) },
      { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.kept(['pod-a'], 80) },
      { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
      { from: 'client', to: view.nodePort(30001), expect: view.kept(['pod-a'], 80) },
    ];
  }),
  ...stickyViews.flatMap((view): Row[] => [
    { from: 'pod-c', to: endpoint(view.clusterIP(42), 80), expect: view.kept(['pod-b'], 80) },
    { from: 'client', to: endpoint(view.loadBalancerIP(4), 80), expect: view.kept(['pod-b'], 80) },
    { from: 'client', to: view.nodePort(30002), expect: view.kept(['pod-b'], 80) },
  ]),
];

/** A table that an administrator has, and wants back after a reboot. */
const FIREWALL = 'table inet firewall {\n chain input { type filter hook input priority 10; tcp dport 9 drop; }\n}\n';
/** The command of docs/install.md: everything but our tables. */
const WITHOUT_OURS = "nft list tables | grep -v ' kube-proxy$' | sed 's/^/list /' | nft -f -";

/** The tables as a former version wrote them: slots are of type mark, and a source is one address whatever its length. nft does not load a random slot there. */
function asFormerly(ruleset: string): string {
  return ruleset
    .replaceAll(/typeof meta cpu\b[^:\n]*: (ip6?) daddr \. th dport/g, (text: string, family: string) => {
      const address = family === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
      const frontend = text.includes('th dport :') && !text.includes('daddr . meta') ? '' : `${address} . `;
      return `type mark . ${frontend}inet_proto . inet_service : ${address} . inet_service`;
    })
    .replaceAll(/(?:numgen random|jhash [^\n]*?) mod \d+ (?:seed 0x[0-9a-f]+ )?\./g, 'meta mark .')
    .replaceAll(/ \. th dport & \d+ \| \d+ \. (?=ip6? daddr \. meta l4proto \. th dport @admitted)/g, ' . ')
    .replaceAll(/(set admitted-sources \{\n\t\ttype ip\w+) \. inet_service/g, '$1')
    .replaceAll(/(set admitted-sources \{\n[^}]*)\n\t\telements = \{[^}]*\}/g, '$1');
}

/** A listing without the order of elements, and without elements that packets write. */
function contentOf(ruleset: string): readonly string[] {
  return ruleset
    .split(/elements = \{|[{}]|,?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.includes(' expires '))
    .sort();
}

if (process.env[MODE_VARIABLE] === undefined)
  t.test('a saved ruleset can be loaded', async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a', 'pod-b'], [[80, 'TCP']]);
    const newer = newerPrograms();
    if (newer === null) t.comment('nft of a newer release cannot be fetched');
    const tools = ['nft', ...(newer === null ? [] : [`${newer}/nft`])];
    const isOld = new Map<string, boolean>();
    for (const tool of tools) isOld.set(tool, (await lab.output('node', [tool, '--version'])).includes('v1.0.'));
    const proxy = await Proxy.start(t, lab, { mode: 'nftables', flags: ['--service-telemetry'] });
    await lab.output('node', ['nft', '-f', '-'], FIREWALL);
    const list = async (tool: string): Promise<string> => {
      JSON.parse(await lab.output('node', [tool, '-j', 'list', 'ruleset']));
      return await lab.output('node', [tool, 'list', 'ruleset']);
    };
    const start = async (canList: boolean): Promise<string> => {
      const from = proxy.log.length;
      proxy.launch();
      await proxy.ready();
      if (canList) await proxy.consistent();
      return proxy.log.slice(from);
    };
    for (const [what, objects, rows, loading] of [
      ['no Service', [], [], tools],
      ['Services', [...WITHOUT_CLIENTS, ...sticky([IPV4])], rowsOf(FAMILY_VIEWS, [IPV4]), tools],
      // nft 1.0 does not load any rule that writes an IPv6 address with a port into a map.
      [
        'Services with affinity in IPv6',
        [...WITHOUT_CLIENTS, ...sticky([IPV4, IPV6])],
        rowsOf([], FAMILY_VIEWS),
        tools.filter((tool) => isOld.get(tool) === false),
      ],
    ] as const) {
      await proxy.apply(objects);
      await checkRows(t, lab, rows, `${what}, before`);
      await proxy.stop();
      const saved = new Map<string, string>();
      for (const tool of tools) saved.set(tool, await list(tool));
      const others = await lab.output('node', ['sh', '-c', WITHOUT_OURS]);
      t.match(others, 'table inet firewall', `${what}: the other tables are saved by themselves`);
      t.notMatch(others, 'kube-proxy');
      await lab.output('node', ['nft', '-c', '-f', '-'], others);
      // nft 1.0.6 crashes at maps that a newer one has loaded, whose ever they are: the last to load is the machine's own.
      for (const loader of [...loading].reverse())
        for (const [tool, ruleset] of saved) {
          // A newer nft lists timeouts with units, which 1.0.6 does not read.
          if (tools.indexOf(tool) > tools.indexOf(loader)) continue;
          await lab.output('node', [loader, '-f', '-'], `flush ruleset\n${ruleset}`);
          t.same(
            contentOf(await list(loader)),
            contentOf(saved.get(loader) ?? ''),
            `${what}: ${loader} loads what ${tool} saved`,
          );
          await checkRows(t, lab, rows, `${what}, saved by ${tool}, loaded by ${loader}`);
        }
      t.notMatch(await start(loading.includes('nft')), /"repaired/, `${what}: a start adopts what was loaded`);
    }
  });

if (process.env[MODE_VARIABLE] === undefined)
  t.test('a table of the former version is made anew without losing a connection', async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a', 'pod-b'], [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, { mode: 'nftables', objects: WITHOUT_CLIENTS });
    await proxy.stop();
    const list = (): Promise<string> => lab.output('node', ['nft', 'list', 'ruleset']);
    const written = await list();
    const former = asFormerly(written);
    t.notMatch(former, /typeof|numgen|jhash/);
    await lab.output('node', ['nft', '-f', '-'], `flush ruleset\n${former}`);
    const watches = await Promise.all(
      FAMILY_VIEWS.map((view) =>
        lab.watch({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80), timeoutMs: patience(3000) }, 2, 1),
      ),
    );
    for (const watch of watches) await watch.turn();
    proxy.launch();
    await proxy.ready();
    await proxy.consistent();
    for (const watch of watches) await watch.turn();
    const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
    t.ok(outcomes.length > 0, 'connections were made');
    t.same(
      outcomes.filter((outcome) => 'error' in outcome),
      [],
      'none was refused or lost',
    );
    t.same(contentOf(await list()), contentOf(written), 'the tables are as this version writes them');
    await checkRows(t, lab, rowsOf(FAMILY_VIEWS, []), 'after the start');
  });
