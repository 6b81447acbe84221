// needs: nft, conntrack
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import t from 'tap';
import { ADDRESSES } from '../support/lab/topology.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';

const PORTS = [
  [80, 'TCP'],
  [53, 'UDP'],
  [5060, 'SCTP'],
] as const;

t.test('lab: plain traffic between all namespaces keeps its source', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b', 'node', 'client'], PORTS);
  for (const from of ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'node', 'remote-node', 'client', 'blocked']) {
    for (const target of ['pod-a', 'pod-c', 'remote-b', 'node'] as const) {
      for (const [port, protocol] of PORTS) {
        for (const address of Object.values(ADDRESSES[target])) {
          const to = endpoint(address, port);
          t.equal(
            await lab.verdict({ from, to, protocol, timeoutMs: 2000 }, { most: 2 }),
            to,
            `${from} reaches ${target} over ${protocol} at ${to}`,
          );
        }
      }
    }
  }
  t.match(await lab.request({ from: 'client', to: '10.244.1.10:80' }), { name: 'pod-a', seen: /^203\.0\.113\.2:/ });
  t.match(await lab.request({ from: 'client', to: '10.244.1.10:53', protocol: 'UDP', bytes: 4000 }), {
    name: 'pod-a',
    bytes: 4000,
  });
});

t.test('lab: refused, dropped and answered requests are distinguished', async (t) => {
  const lab = await Lab.start(t);
  t.equal(await lab.verdict({ from: 'client', to: '10.244.1.10:81' }), 'refused', 'no listener, TCP');
  t.equal(
    await lab.verdict({ from: 'client', to: '[fd00:244:1::a]:81', protocol: 'UDP' }),
    'refused',
    'no listener, UDP',
  );
  t.equal(
    await lab.verdict({ from: 'pod-a', to: '10.96.0.10:80', timeoutMs: 100 }),
    'dropped',
    'no host has the address',
  );
  t.equal(
    await lab.verdict({ from: 'pod-a', to: '[fd00:10:96::10]:80', timeoutMs: 100 }),
    'dropped',
    'no host has the address',
  );
  await lab.setLink('remote-node', 'veth-a', 'down');
  t.equal(await lab.verdict({ from: 'pod-a', to: '10.244.2.99:80' }), 'unreachable', 'no route beyond the remote node');
  await t.rejects(lab.serve('pod-a', '10.244.1.99:80'), /TCP server on 10\.244\.1\.99:80 in pod-a: Cannot assign/);
  await t.rejects(lab.request({ from: 'pod-z', to: '10.244.1.99:80' }), /no namespace 'pod-z'/);
});

/** What a Service's rules would do, written by hand: 10.96.0.10 and its IPv6 twin go to pod-a, .11 is refused, .12 dropped. */
const RULES = `
table inet by-hand {
  chain prerouting { type nat hook prerouting priority dstnat; goto services; }
  chain output { type nat hook output priority -100; goto services; }
  chain services {
    ip daddr 10.96.0.10 meta l4proto { tcp, udp, sctp } dnat ip to 10.244.1.10
    ip6 daddr fd00:10:96::10 meta l4proto { tcp, udp, sctp } dnat ip6 to fd00:244:1::a
    ip daddr 192.0.2.1 tcp dport 80 meta mark set 0x4000 dnat ip to numgen inc mod 2 map { 0: 10.244.1.10, 1: 10.244.2.10 }
    fib daddr type local tcp dport 30080 meta mark set 0x4000 dnat ip to 10.244.2.10:80
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    meta mark 0x4000 masquerade fully-random
    ct status dnat ip saddr 10.244.1.10 ip daddr 10.244.1.10 masquerade fully-random
    ct status dnat ip6 saddr fd00:244:1::a ip6 daddr fd00:244:1::a masquerade fully-random
  }
  chain forward { type filter hook forward priority filter; goto check; }
  chain local { type filter hook output priority filter; goto check; }
  chain check {
    ip daddr 10.96.0.11 reject
    ip6 daddr fd00:10:96::11 reject
    ip daddr 10.96.0.12 drop
    ip6 daddr fd00:10:96::12 drop
  }
}`;

t.test('lab: clients and servers observe hand-written rules', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'remote-a'], PORTS);
  await lab.output('node', ['nft', '-f', '-'], RULES);
  for (const from of ['pod-a', 'pod-b', 'remote-b', 'node', 'client']) {
    const masqueraded = from === 'pod-a' ? ' masqueraded' : '';
    for (const [port, protocol] of PORTS) {
      const traffic = (to: string) => ({ from, to: endpoint(to, port), protocol });
      for (const [services, podA] of [
        ['10.96.0.', ADDRESSES['pod-a'].IPv4],
        ['fd00:10:96::', ADDRESSES['pod-a'].IPv6],
      ] as const) {
        t.equal(
          await lab.verdict(traffic(`${services}10`), { most: 4 }),
          endpoint(podA, port) + masqueraded,
          `${from} to ${podA}, ${protocol}`,
        );
        t.equal(
          await lab.verdict(traffic(`${services}11`), { most: 4 }),
          'refused',
          `${from} to ${services}11, ${protocol}`,
        );
        t.equal(
          await lab.verdict({ ...traffic(`${services}12`), timeoutMs: 100 }, { most: 4 }),
          'dropped',
          `${from} to ${services}12, ${protocol}`,
        );
      }
    }
    t.equal(await lab.verdict({ from, to: '192.0.2.1:80' }), '10.244.1.10:80 masqueraded, 10.244.2.10:80 masqueraded');
    for (const nodePort of ['192.168.0.2:30080', '192.168.1.2:30080']) {
      t.equal(
        await lab.verdict({ from, to: nodePort }, { most: 4 }),
        '10.244.2.10:80 masqueraded',
        `${from} to ${nodePort}`,
      );
    }
  }
  const sctp = (await lab.flows()).filter((line) => line.startsWith('sctp') && line.includes('dst=10.96.0.10 '));
  t.ok(sctp.length > 0, "connection tracking accepts the laboratory's SCTP");
  t.match(await lab.ruleset(), /table inet by-hand/);
  t.hasProp(await lab.rulesetJson(), 'nftables');
});

t.test('lab: long-lived connections and watches work', async (t) => {
  const lab = await Lab.start(t);
  const [first] = await Promise.all([lab.serve('pod-a', '10.244.1.10:80'), lab.serve('pod-b', '10.244.1.11:80')]);
  const rule = (pod: string) => `table ip by-hand {
    chain prerouting {
      type nat hook prerouting priority dstnat
      ip daddr 10.96.0.10 dnat to ${pod}
    }
  }`;
  await lab.output('node', ['nft', '-f', '-'], rule('10.244.1.10'));
  const connection = await lab.open({ from: 'client', to: '10.96.0.10:80' });
  const watch = await lab.watch({ from: 'client', to: '10.96.0.10:80' });
  await watch.turn();
  const before = Date.now();
  await lab.output('node', ['nft', '-f', '-'], `flush ruleset\n${rule('10.244.1.11')}`);
  const after = Date.now();
  await watch.turn();
  t.match(await connection.exchange(), { name: 'pod-a' }, 'a connection stays where it began');
  const outcomes = await watch.stop();
  t.same(outcomes.map((outcome) => ('name' in outcome ? outcome.name : outcome.error)).sort(), ['pod-a', 'pod-b']);
  const times = new Map(outcomes.map((outcome) => ['name' in outcome ? outcome.name : outcome.error, outcome]));
  const [a, b] = [times.get('pod-a'), times.get('pod-b')];
  if (a === undefined || b === undefined) throw new Error('one was not met');
  // What a request meets is decided after it has started, perhaps a good while after.
  t.ok(
    a.first < before && a.last <= after && b.first > a.first && b.last > after,
    JSON.stringify({ before, after, a, b }),
  );
  await first.close();
  t.match(await connection.exchange(), { error: 'reset' }, 'a closed server ends its connections');
});

t.test('lab: it is separate from the host, and ends with its process', async (t) => {
  const script = `
    import { Lab } from ${JSON.stringify(new URL('../support/lab/lab.js', import.meta.url).href)};
    const lab = await Lab.start({ teardown() {} });
    await lab.serve('pod-a', '10.244.1.10:80');
    const links = await lab.output('pod-a', ['cat', '/proc/self/net/dev']);
    console.log(JSON.stringify({ links, pids: [lab.pid, lab.spawn('node', ['sleep', '60']).pid] }));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { links, pids } = JSON.parse(line) as { links: string; pids: number[] };
  t.same([...links.matchAll(/^ *(\S+):/gm)].map((match) => match[1]).sort(), ['eth0', 'lo']);
  t.equal(pids.length, 2);
  // In the middle of its exec a process has no command line either.
  await eventually('all processes', () => Promise.resolve(pids.every(runs) ? true : null));
  child.kill('SIGKILL');
  await eventually('the end of all processes', () => Promise.resolve(pids.some(runs) ? null : true));
});

function runs(pid: number): boolean {
  try {
    // A zombie that its new parent has not collected yet has no command line.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
}
