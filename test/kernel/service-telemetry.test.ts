// Connections, packets and bytes of Services, counted on real packets: exactly those that the kernel's own table has.
// needs: conntrack, iptables
import t, { type Test } from 'tap';
import type { Protocol } from '../../src/base/protocol.js';
import { usually } from '../support/extent.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import { labMode, MODE_VARIABLE, type LabMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { parseExposition } from '../support/exposition.js';

const MODES: readonly LabMode[] =
  process.env[MODE_VARIABLE] === undefined ? usually(['nftables'], ['nftables', 'iptables-nft']) : [labMode()];
const FLAGS = ['--service-telemetry', '--service-telemetry-endpoints'];
const WEB = dualStack('web', {
  type: 'NodePort',
  number: 41,
  ports: [{ name: 'http', port: 80, nodePort: 30001 }],
  endpoints: ['pod-a', 'remote-a'],
});
const DNS = dualStack('dns', {
  number: 42,
  ports: [{ name: 'dns', protocol: 'UDP', port: 53 }],
  endpoints: ['pod-a', 'remote-a'],
  affinitySeconds: 600,
});
/** Whose packets get no further: each port is one Service's, so that a witness can tell them apart. */
const REFUSING = [
  ...dualStack('empty', {
    type: 'NodePort',
    number: 43,
    ports: [
      { name: 'http', port: 8001, nodePort: 30003 },
      { name: 'dns', protocol: 'UDP', port: 8002 },
    ],
    endpoints: [],
  }),
  ...dualStack('away', {
    number: 44,
    loadBalancers: [44],
    externalTrafficPolicy: 'Local',
    ports: [{ name: 'http', port: 8003, nodePort: 30004 }],
    endpoints: ['remote-a'],
  }),
  ...dualStack('ranges', {
    number: 45,
    loadBalancers: [45],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ name: 'http', port: 8005 }],
    endpoints: ['pod-a'],
  }),
];
/** By the metric's name and labels: who counts for it, protocol and port. */
const WITNESSES = {
  'refused_packets_total default empty http TCP no-endpoints': ['tcp 8001', 'tcp 30003'],
  'refused_packets_total default empty dns UDP no-endpoints': ['udp 8002'],
  'dropped_packets_total default away http TCP no-local-endpoints': ['tcp 8003', 'tcp 30004'],
  'dropped_packets_total default ranges http TCP source-range': ['tcp 8005'],
} as const;

type Numbers = Readonly<Record<string, number>>;

/** What the metrics say of Services but the laboratory's own, by `name labels`. */
async function notified(lab: Lab): Promise<Numbers> {
  const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  if (!('body' in answer)) throw new Error('no metrics');
  const families = [...parseExposition(answer.body).values()].filter(({ name }) =>
    name.startsWith('pointsman_service_'),
  );
  return Object.fromEntries(
    families.flatMap(({ samples }) =>
      samples
        .filter(
          ({ name, labels }) =>
            labels['service'] !== 'marker' && (labels['service'] !== undefined || name.endsWith('_flows')),
        )
        .map(({ name, labels, value }) => [
          [name.replace('pointsman_service_', ''), ...Object.values(labels)].join(' '),
          value,
        ]),
    ),
  );
}

/** What conntrack(8) shows of flows to these destinations and ports: flows, and packets and bytes there and back. */
async function shown(lab: Lab, protocol: Protocol, ports: readonly number[]): Promise<readonly number[]> {
  const sum = [0, 0, 0, 0, 0];
  for (const family of ['ipv4', 'ipv6']) {
    const listing = await lab.output('node', ['conntrack', '-L', '-f', family, '-p', protocol.toLowerCase()]);
    for (const line of listing.split('\n')) {
      const all = (key: string): number[] =>
        [...line.matchAll(new RegExp(`\\b${key}=(\\d+)`, 'g'))].map(([, value]) => Number(value));
      if (!ports.includes(all('dport')[0] ?? 0) || all('packets').length !== 2) continue;
      const [packets, bytes] = [all('packets'), all('bytes')];
      const flow = [1, packets[0], bytes[0], packets[1], bytes[1]];
      for (const [index, value] of flow.entries()) sum[index] = (sum[index] ?? 0) + (value ?? 0);
    }
  }
  return sum;
}

function numbersOf(numbers: Numbers, service: string): readonly number[] {
  const value = (name: string): number => numbers[name] ?? 0;
  return [
    value(`connections_total ${service}`),
    ...['request', 'reply'].flatMap((way) => [
      value(`packets_total ${service} ${way}`),
      value(`bytes_total ${service} ${way}`),
    ]),
  ];
}

interface Counted {
  readonly service: string;
  readonly protocol: Protocol;
  readonly ports: readonly number[];
  readonly connections: number;
}

/** Waits until the metrics say what the kernel's table does, or where that forgets what has ended, that there were so many connections. */
async function untilSame(
  t: Test,
  lab: Lab,
  mode: LabMode,
  { service, protocol, ports, connections }: Counted,
): Promise<Numbers> {
  if (forgets(mode)) {
    const numbers = await eventually(
      `${service}: ${connections} connections`,
      async () => {
        const numbers = await notified(lab);
        return numbersOf(numbers, service)[0] === connections ? numbers : null;
      },
      patience(30_000),
    );
    t.ok(
      numbersOf(numbers, service).every((number) => number >= connections),
      numbersOf(numbers, service).join(),
    );
    return numbers;
  }
  let last = '';
  const numbers = await eventually(
    `${service} counted as the kernel has it: ${last}`,
    async () => {
      const before = await shown(lab, protocol, ports);
      const numbers = await notified(lab);
      last = `${numbersOf(numbers, service).join()} against ${before.join()}`;
      return numbersOf(numbers, service).join() === before.join() ? numbers : null;
    },
    patience(30_000),
  ).catch((error: unknown) => {
    t.comment(last);
    throw error;
  });
  t.ok((numbersOf(numbers, service)[2] ?? 0) > 0, last);
  t.equal(numbersOf(numbers, service)[0], connections);
  return numbers;
}

/** ip_vs takes away what conntrack has of a connection when it forgets that: ten seconds after its end, whatever conntrack's own timeouts are. */
function forgets(mode: LabMode): boolean {
  return mode.startsWith('ipvs');
}

/** Has another table count what comes in, or is sent here, before any rule of ours sees it. */
async function watchArrivals(lab: Lab): Promise<void> {
  const ports = Object.values(WITNESSES).flat();
  const counters = ports.map((port) => `counter ${port.replace(' ', '')} {}`);
  const rules = ports.map((port) => `${port.replace(' ', ' dport ')} counter name ${port.replace(' ', '')}`);
  const chains = ['prerouting', 'output'].map(
    (hook) => `chain ${hook} { type filter hook ${hook} priority -300; ${rules.join('; ')}; }`,
  );
  await lab.output('node', ['nft', '-f', '-'], `table inet witness { ${[...counters, ...chains].join('\n')}\n}\n`);
}

/** What it has counted, by the metrics that should say the same. */
async function arrivals(lab: Lab): Promise<Numbers> {
  interface Listing {
    readonly nftables: readonly { readonly counter?: { readonly name: string; readonly packets: number } }[];
  }
  const listing = JSON.parse(await lab.output('node', ['nft', '-j', 'list', 'table', 'inet', 'witness'])) as Listing;
  const packets = new Map(
    listing.nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : [])),
  );
  return Object.fromEntries(
    Object.entries(WITNESSES).map(([metric, ports]) => [
      metric,
      ports.reduce((sum, port) => sum + (packets.get(port.replace(' ', '')) ?? 0), 0),
    ]),
  );
}

/** What the metrics say of packets that got no further. */
function refusedOf(numbers: Numbers): Numbers {
  return Object.fromEntries(Object.keys(WITNESSES).map((metric) => [metric, numbers[metric] ?? 0]));
}

/** Waits until the metrics say what has arrived since. */
async function untilRefused(t: Test, lab: Lab, before: Numbers): Promise<Numbers> {
  let last = '';
  return await eventually('what is refused is counted', async () => {
    const arrived = await arrivals(lab);
    const reported = refusedOf(await notified(lab));
    const wanted = Object.fromEntries(
      Object.entries(arrived).map(([metric, packets]) => [metric, packets - (before[metric] ?? 0)]),
    );
    last = `${JSON.stringify(reported)} against ${JSON.stringify(wanted)}`;
    return JSON.stringify(reported) === JSON.stringify(wanted) ? wanted : null;
  }).catch((error: unknown) => {
    t.comment(last);
    throw error;
  });
}

async function sendRefused(t: Test, lab: Lab): Promise<void> {
  for (const view of FAMILY_VIEWS) {
    for (const [traffic, expected] of [
      [{ from: 'pod-b', to: endpoint(view.clusterIP(43), 8001) }, 'refused'],
      [{ from: 'node', to: endpoint(view.clusterIP(43), 8001) }, 'refused'],
      [{ from: 'client', to: view.nodePort(30003) }, 'refused'],
      // Errors of ICMP are rate limited.
      [{ from: 'pod-b', to: endpoint(view.clusterIP(43), 8002), protocol: 'UDP', timeoutMs: 250 }, null],
      [{ from: 'client', to: endpoint(view.loadBalancerIP(44), 8003), timeoutMs: 250 }, 'dropped'],
      [{ from: 'client', to: view.nodePort(30004), timeoutMs: 250 }, 'dropped'],
      [{ from: 'blocked', to: endpoint(view.loadBalancerIP(45), 8005), timeoutMs: 250 }, 'dropped'],
    ] as const) {
      const verdict = await lab.verdict(traffic, { most: 3 });
      if (expected !== null) t.match(verdict, expected, JSON.stringify(traffic));
    }
  }
}

/** Maps of clients that session affinity remembers somebody in. */
async function rememberedIn(lab: Lab): Promise<number> {
  const maps = (await lab.ruleset()).match(/\tmap clients-\S+ \{[^]*?\n\t\}/g) ?? [];
  return maps.filter((map) => map.includes('elements')).length;
}

for (const mode of MODES) {
  t.test(`service telemetry counts real traffic, mode ${mode}`, async (t) => {
    // A flow of a single question to DNS would last for two seconds, and flows are compared with.
    const flags = [...FLAGS, '--dns-retry=0'];
    const lab = await Lab.start(t);
    await lab.serveAll(
      ['pod-a', 'remote-a'],
      [
        [80, 'TCP'],
        [53, 'UDP'],
      ],
    );
    // Flows stay to be compared with. The kernel knows no sysctls of conntrack in a namespace before rules use it.
    await lab.output('node', ['nft', 'add table ip t; add chain ip t c { type nat hook output priority 0; }']);
    for (const state of ['tcp_timeout_close', 'tcp_timeout_time_wait', 'udp_timeout', 'udp_timeout_stream'])
      await lab.sysctl('node', `net/netfilter/nf_conntrack_${state}`, '3600');
    await lab.output('node', ['nft', 'delete table ip t']);
    const proxy = await Proxy.start(t, lab, { mode, flags, objects: [...WEB, ...DNS, ...REFUSING] });
    t.equal(await lab.sysctl('node', 'net/netfilter/nf_conntrack_acct'), '1');

    const byName = new Map<string, number>();
    let connections = 0;
    for (const view of FAMILY_VIEWS) {
      for (const traffic of [
        { from: 'pod-b', to: endpoint(view.clusterIP(41), 80) },
        { from: 'node', to: endpoint(view.clusterIP(41), 80) },
        { from: 'client', to: view.nodePort(30001) },
        { from: 'pod-b', to: view.nodePort(30001), bytes: 4000 },
      ]) {
        for (const outcome of await lab.burst(traffic, 10)) {
          if (!('name' in outcome)) throw new Error(JSON.stringify(outcome));
          const key = `${outcome.name} ${view.family}`;
          byName.set(key, (byName.get(key) ?? 0) + outcome.count);
          connections += outcome.count;
        }
      }
    }
    t.equal(connections, 80);
    const web = (count: number): Counted => ({
      service: 'default web http TCP',
      protocol: 'TCP',
      ports: [80, 30001],
      connections: count,
    });
    const numbers = await untilSame(t, lab, mode, web(connections));
    for (const view of FAMILY_VIEWS) {
      for (const name of ['pod-a', 'remote-a'] as const) {
        const to = endpoint(view.address(name), 80);
        const wanted = byName.get(`${name} ${view.family}`) ?? 0;
        t.equal(
          numbers[`endpoint_connections_total default web http TCP ${to}`] ?? 0,
          wanted,
          `${name} in ${view.family}`,
        );
      }
    }

    // A client stays with its endpoint, by flows of its own.
    for (const view of FAMILY_VIEWS)
      await lab.burst({ from: 'client', to: endpoint(view.clusterIP(42), 53), protocol: 'UDP' }, 9);
    const dns = await untilSame(t, lab, mode, {
      service: 'default dns dns UDP',
      protocol: 'UDP',
      ports: [53],
      connections: 18,
    });
    const ofEach = Object.entries(dns).filter(([name]) => name.startsWith('endpoint_connections_total default dns'));
    t.same(
      ofEach.map(([, count]) => count),
      [9, 9],
    );

    // One that goes on counts once.
    const connection = await lab.open({ from: 'pod-b', to: endpoint(IPV4.clusterIP(41), 80) });
    for (let exchange = 0; exchange < 2; exchange++) {
      await connection.exchange();
      await untilSame(t, lab, mode, web(connections + 1));
    }
    await connection.close();
    const before = await untilSame(t, lab, mode, web(connections + 1));

    // What ends has been counted already.
    if (!forgets(mode)) await lab.output('node', ['conntrack', '-D', '-p', 'tcp', '--dport', '80']);
    const after = await eventually('their ends are counted', async () => {
      const numbers = await notified(lab);
      return (numbers['telemetry_flows'] ?? 0) < (before['telemetry_flows'] ?? 0) ? numbers : null;
    });
    const [ended, open] = [after, before].map((each) => numbersOf(each, web(0).service));
    // The table's own numbers had what closed the connection; those that waited for connections alone may not have.
    if (forgets(mode)) t.equal(ended?.[0], open?.[0]);
    else t.same(ended, open);

    await watchArrivals(lab);
    await sendRefused(t, lab);
    t.notOk((await notified(lab))['connections_total default empty http TCP'], 'what is refused makes no flow');
    const first = await untilRefused(t, lab, {});
    t.ok(
      Object.values(first).every((packets) => packets >= 4),
      JSON.stringify(first),
    );
    const seen = await arrivals(lab);
    await proxy.restart();
    t.same(Object.values(refusedOf(await notified(lab))), [0, 0, 0, 0], 'what was refused before does not count');
    await sendRefused(t, lab);
    await untilRefused(t, lab, seen);
    if (mode === 'nftables') {
      const remembered = await rememberedIn(lab);
      t.ok(remembered > 0);
      for (const counts of [false, true]) {
        flags.splice(0, flags.length, ...(counts ? FLAGS : []));
        await proxy.restart();
        await proxy.consistent();
        t.equal((await lab.ruleset()).includes('counted-rejected-frontends'), counts);
        t.equal(await rememberedIn(lab), remembered, 'clients stay');
      }
      t.match(
        await lab.verdict({ from: 'pod-b', to: endpoint(IPV4.clusterIP(41), 80) }),
        endpoint(IPV4.address('pod-a'), 80),
      );
    }

    await lab.burst({ from: 'pod-b', to: endpoint(IPV4.clusterIP(41), 80) }, 2);
    await eventually(
      'numbers of a Service',
      async () => (await notified(lab))['connections_total default web http TCP'],
    );
    await lab.burst({ from: 'client', to: endpoint(IPV4.clusterIP(42), 53), protocol: 'UDP' }, 2);
    await proxy.apply(DNS);
    await eventually('numbers of a deleted Service are gone', async () => {
      const names = Object.keys(await notified(lab));
      return !names.some((name) => name.includes('default web')) && names.some((name) => name.includes('default dns'));
    });
  });
}
