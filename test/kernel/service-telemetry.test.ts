// Connections, packets and bytes of Services, counted on real packets: exactly those that the kernel's own table has.
import t, { type Test } from 'tap';
import type { Protocol } from '../../src/base/protocol.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { parseExposition } from '../support/exposition.js';

const MODES: readonly LabMode[] = ['nftables', 'iptables-nft'];
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
const EMPTY = dualStack('empty', { number: 43, ports: [{ name: 'http', port: 80 }], endpoints: [] });

type Numbers = Readonly<Record<string, number>>;

/** What the metrics say of Services but the laboratory's own, by `name labels`. */
async function told(lab: Lab): Promise<Numbers> {
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

/** Waits until the metrics say what the kernel's table does. */
async function untilSame(
  t: Test,
  lab: Lab,
  service: string,
  protocol: Protocol,
  ports: readonly number[],
): Promise<Numbers> {
  let last = '';
  const numbers = await eventually(
    `${service} counted as the kernel has it: ${last}`,
    async () => {
      const before = await shown(lab, protocol, ports);
      const numbers = await told(lab);
      last = `${numbersOf(numbers, service).join()} against ${before.join()}`;
      return numbersOf(numbers, service).join() === before.join() ? numbers : null;
    },
    patience(30_000),
  ).catch((error: unknown) => {
    t.comment(last);
    throw error;
  });
  t.ok((numbersOf(numbers, service)[2] ?? 0) > 0, last);
  return numbers;
}

for (const mode of MODES) {
  t.test(mode, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(
      ['pod-a', 'remote-a'],
      [
        [80, 'TCP'],
        [53, 'UDP'],
      ],
    );
    const proxy = await Proxy.start(t, lab, { mode, flags: FLAGS, objects: [...WEB, ...DNS, ...EMPTY] });
    t.equal(await lab.sysctl('node', 'net/netfilter/nf_conntrack_acct'), '1');
    // Flows stay to be compared with.
    for (const state of ['tcp_timeout_close', 'tcp_timeout_time_wait', 'udp_timeout', 'udp_timeout_stream'])
      await lab.sysctl('node', `net/netfilter/nf_conntrack_${state}`, '3600');

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
    const numbers = await untilSame(t, lab, 'default web http TCP', 'TCP', [80, 30001]);
    t.equal(numbers['connections_total default web http TCP'], connections);
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
    const dns = await untilSame(t, lab, 'default dns dns UDP', 'UDP', [53]);
    t.equal(dns['connections_total default dns dns UDP'], 18);
    const ofEach = Object.entries(dns).filter(([name]) => name.startsWith('endpoint_connections_total default dns'));
    t.same(
      ofEach.map(([, count]) => count),
      [9, 9],
    );

    // One that goes on counts once.
    const connection = await lab.open({ from: 'pod-b', to: endpoint(IPV4.clusterIP(41), 80) });
    for (let exchange = 0; exchange < 2; exchange++) {
      await connection.exchange();
      await untilSame(t, lab, 'default web http TCP', 'TCP', [80, 30001]);
    }
    await connection.close();
    const before = await untilSame(t, lab, 'default web http TCP', 'TCP', [80, 30001]);
    t.equal(before['connections_total default web http TCP'], 81);

    // What ends has been counted already.
    await lab.output('node', ['conntrack', '-D', '-p', 'tcp', '--dport', '80']);
    const after = await eventually('their ends are told', async () => {
      const numbers = await told(lab);
      return (numbers['telemetry_flows'] ?? 0) < (before['telemetry_flows'] ?? 0) ? numbers : null;
    });
    t.same(numbersOf(after, 'default web http TCP'), numbersOf(before, 'default web http TCP'));

    t.match(await lab.verdict({ from: 'pod-b', to: endpoint(IPV4.clusterIP(43), 80) }), 'refused');
    t.notOk(
      Object.keys(await told(lab)).some((name) => name.includes('_total default empty')),
      'what is refused makes no flow',
    );

    await proxy.apply(DNS);
    await eventually('numbers of a deleted Service are gone', async () => {
      const names = Object.keys(await told(lab));
      return !names.some((name) => name.includes('default web')) && names.some((name) => name.includes('default dns'));
    });
  });
}
