// What stands in a packet's way outside our rules: each fault is made in a namespace, and the command that names it does so in one step, with the value and
// what to do. Health stays what load balancers need.
// needs: nft
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import t from 'tap';
import type { Observation } from '../../src/observe/observations.js';
import type { ProcessStatus } from '../../src/observe/process-status.js';
import type { SelftestRow } from '../../src/cli/print-selftest.js';
import { SELFTEST_BLOCKS } from '../../src/control/selftest-scene.js';
import type { ExplainedPacket } from '../../src/serve/explain-packet.js';
import { inFull, usually } from '../support/extent.js';
import { eventually, Lab, type CommandResult } from '../support/lab/lab.js';
import { endpointSlice, node, service } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';

const WEB = dualStack('web', {
  type: 'NodePort',
  number: 41,
  ports: [{ port: 80, nodePort: 30001 }],
  endpoints: ['pod-a', 'remote-a'],
});

class Node {
  constructor(
    readonly lab: Lab,
    readonly proxy: Proxy,
  ) {}

  run(...words: readonly string[]): Promise<CommandResult> {
    return this.lab.run('node', [PROGRAM, ...words, '--status-socket', this.proxy.statusSocket]);
  }

  async status(): Promise<{
    readonly exit: number | null;
    readonly text: string;
    readonly seen: readonly Observation[];
  }> {
    const { status: exit, stdout: text } = await this.run('status');
    const { stdout } = await this.run('status', '-o', 'json');
    return { exit, text, seen: (JSON.parse(stdout) as ProcessStatus).observations };
  }

  async explain(
    ...words: readonly string[]
  ): Promise<{ readonly exit: number | null; readonly seen: readonly Observation[] }> {
    const { status: exit, stdout } = await this.run('explain', ...words, '-o', 'json');
    return { exit, seen: (JSON.parse(stdout) as ExplainedPacket).observations };
  }

  /** Status and body of the health checks with all that there is to say. */
  async health(): Promise<string> {
    const url = `http://127.0.0.1:10256/healthz?verbose`;
    return (await this.lab.run('node', ['curl', '-s', '-m', '60', '-w', '\n%{http_code}', url])).stdout;
  }

  async sysctl(name: string, value: string): Promise<void> {
    await this.lab.output('node', ['sh', '-c', `echo ${value} > /proc/sys/${name.replaceAll('.', '/')}`]);
  }
}

t.test('status, explain and /healthz name faults of a running proxy', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { objects: WEB });
  const machine = new Node(lab, proxy);

  t.match(await machine.status(), { exit: 0, text: /^.*\nhealthy\n/, seen: [] }, 'nothing is wrong');
  t.match(await machine.explain('10.96.0.41:80', '--from', '10.244.1.12'), { exit: 0, seen: [] });
  t.match(await machine.health(), /^\{(?!.*observations).*\}\n200$/);

  const sysctls = [
    ['net.ipv4.ip_forward', /^net\.ipv4\.ip_forward is 0: this node forwards no IPv4 packet/, ['10.96.0.41:80']],
    ['net.ipv6.conf.all.forwarding', /^net\.ipv6\.conf\.all\.forwarding is 0/, ['[fd00:10:96::41]:80']],
    ['net.ipv4.conf.veth-a.forwarding', /^net\.ipv4\.conf\.veth-a\.forwarding is 0/, ['10.96.0.41:80']],
  ] as const;
  for (const [name, pattern, words] of usually(sysctls.slice(0, 1), sysctls)) {
    await machine.sysctl(name, '0');
    const reported = { kind: 'forwarding', severity: 'warning', text: pattern, remedy: /^sysctl -w .*=1/ };
    t.match(
      await machine.status(),
      { exit: 1, text: /\nhealthy, with 1 warning\n {2}warning: net\./, seen: [reported] },
      name,
    );
    t.match(await machine.explain(...words), { exit: 1, seen: [reported] }, `explain: ${name}`);
    const shown = (await machine.run('explain', ...words)).stdout;
    t.match(shown, /^in the way +warning: net\.ipv.*\n +remedy: sysctl -w/m);
    t.match(
      await machine.health(),
      /"observations":\[\{"kind":"forwarding".*\n200$/,
      'health stays what balancers need',
    );
    await machine.sysctl(name, '1');
    t.match(await machine.status(), { exit: 0, seen: [] }, `${name}: over`);
  }

  await lab.output('node', ['ip', 'route', 'add', 'unreachable', '10.244.2.10/32']);
  t.match(await machine.explain('10.96.0.41:80', '--from', '10.244.1.12'), {
    exit: 1,
    seen: [
      {
        kind: 'route',
        text: 'there is no route to endpoint 10.244.2.10: EHOSTUNREACH',
        remedy: /ip route get 10\.244\.2\.10/,
      },
    ],
  });
  t.match(
    await machine.status(),
    {
      exit: 1,
      seen: [
        {
          kind: 'route',
          severity: 'warning',
          text: /^there is no route to 1 of 4 endpoint networks, as 10\.244\.2\.0\/24 of default\/web\S*: EHOSTUNREACH$/,
          remedy: /ip route get 10\.244\.2\.10/,
        },
      ],
    },
    'status: one endpoint of each network',
  );
  await lab.output('node', ['ip', 'route', 'add', 'unreachable', '10.96.0.0/16']);
  const { seen } = await machine.explain('10.96.0.41:80', '--from', 'node');
  t.match(seen, [
    { text: 'there is no route to the Service address 10.96.0.41: EHOSTUNREACH', remedy: /default route/ },
    {},
  ]);
  await lab.output('node', ['ip', 'route', 'del', 'unreachable', '10.96.0.0/16']);
  await lab.output('node', ['ip', 'route', 'del', 'unreachable', '10.244.2.10/32']);

  await machine.sysctl('net.ipv4.conf.veth-a.rp_filter', '1');
  t.match(
    await machine.explain('10.96.0.41:80', '--from', 'veth-a'),
    {
      exit: 0,
      seen: [{ kind: 'reverse-path', severity: 'note', text: /veth-a\.rp_filter is 1/, remedy: /rp_filter=2/ }],
    },
    'a note is no warning',
  );
});

t.test(
  'explain names a strict rp_filter by which no route leads back to the sender, and packets are lost',
  async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-b'], [[8080, 'TCP']]);
    const objects = dualStack('web', { number: 41, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-b'] });
    const machine = new Node(lab, await Proxy.start(t, lab, { objects }));
    const foreign = '10.244.2.99';
    await lab.addAddress('pod-a', 'eth0', `${foreign}/32`);
    await machine.sysctl('net.ipv4.conf.veth-a.rp_filter', '1');
    const ask = (source: string): ReturnType<Node['explain']> =>
      machine.explain('10.96.0.41:80', '--from', `${source}%veth-a`);
    const request = async (source: string): Promise<boolean> =>
      'at' in (await lab.request({ from: 'pod-a', to: '10.96.0.41:80', source, timeoutMs: 1000 }));
    const text = /veth-a\.rp_filter is 1, and the route leads by eth0 back to 10\.244\.2\.99: the kernel drops/;
    t.match(await ask(foreign), {
      exit: 1,
      seen: [{ kind: 'reverse-path', severity: 'warning', text, remedy: /ip route get 10\.244\.2\.99/ }],
    });
    t.equal(await request(foreign), false);
    t.match(await ask(ADDRESSES['pod-a'].IPv4), { exit: 0, seen: [] });
    t.equal(await request(ADDRESSES['pod-a'].IPv4), true, 'its own address is reached by its interface');
    await lab.output('node', ['ip', 'route', 'add', `${foreign}/32`, 'dev', 'veth-a']);
    t.match(await ask(foreign), { exit: 0, seen: [] });
    t.equal(await request(foreign), true, 'once the route leads back');
  },
);

t.test('a bridge that carries pods past netfilter is named where it loses answers, and packets are lost', async (t) => {
  const lab = await Lab.start(t);
  const pods = [
    ['pod-b', 'veth-b', '10.244.7.11/24', 'fd00:244:7::b/64'],
    ['pod-c', 'veth-c', '10.244.7.12/24', 'fd00:244:7::c/64'],
  ] as const;
  for (const address of ['10.244.7.1/24', 'fd00:244:7::1/64']) await lab.addAddress('node', 'cbr0', address);
  for (const [pod, link, ...addresses] of pods) {
    await lab.output('node', ['ip', 'link', 'set', link, 'master', 'cbr0']);
    for (const address of addresses) await lab.addAddress(pod, 'eth0', address);
  }
  // By its first addresses the laboratory sees which objects the node has read.
  for (const own of ['10.244.1.11/32', 'fd00:244:1::b/128'])
    await lab.output('node', ['ip', 'route', 'replace', own, 'dev', 'cbr0']);
  const to = { IPv4: '10.96.0.41:80', IPv6: '[fd00:10:96::41]:80' } as const;
  const from = { IPv4: '10.244.7.11', IPv6: 'fd00:244:7::b' } as const;
  await lab.serve('pod-c', '10.244.7.12:8080');
  await lab.serve('pod-c', '[fd00:244:7::c]:8080');
  const objects = [
    service('web', { clusterIPs: ['10.96.0.41', 'fd00:10:96::41'], ports: [{ name: '', port: 80, targetPort: 8080 }] }),
    ...['10.244.7.12', 'fd00:244:7::c'].map((address) =>
      endpointSlice('web', [{ address }], [{ name: '', port: 8080 }]),
    ),
  ];
  // Entries of /sys/class/net belong to the network that sysfs was mounted in.
  const launcher = ['unshare', '-m', 'sh', '-c', 'mount -t sysfs sysfs /sys && exec "$@"', 'sh'];
  const machine = new Node(lab, await Proxy.start(t, lab, { objects, launcher }));
  const answered = async (family: 'IPv4' | 'IPv6'): Promise<boolean> =>
    'at' in (await lab.request({ from: 'pod-b', to: to[family], source: from[family], timeoutMs: 1000 }));
  const ask = (family: 'IPv4' | 'IPv6'): ReturnType<Node['explain']> =>
    machine.explain(to[family], '--from', from[family]);
  /** Rows of selftest about the bridge, in the order of their destinations. @param first a shell runs it before, in the process of the test. */
  const overBridge = async (first = ''): Promise<readonly SelftestRow[]> => {
    const words = ['node', PROGRAM, 'selftest', '--seconds=4', '-o', 'json', '--status-socket'];
    const started = ['sh', '-ec', `${first}\nexec "$@"`, 'sh', ...words, machine.proxy.statusSocket];
    const { stdout, stderr } = await lab.run('node', started);
    if (stdout === '') throw new Error(stderr);
    return (JSON.parse(stdout) as readonly SelftestRow[])
      .filter(({ what, text }) => /pods on one bridge|over bridge cbr0/.test(`${what} ${text}`))
      .sort((one, other) => (one.to < other.to ? -1 : 1));
  };
  const tested = (lost: string, expected: (isLost: boolean) => object): readonly object[] =>
    [
      ['IPv4', /^198\.1[89]\./],
      ['IPv6', /^\[2001:2:/],
    ].flatMap(([family, to]) =>
      ['TCP', 'UDP'].map((protocol) => ({ to, protocol, from: 'bridge cbr0', ...expected(family === lost) })),
    );
  /** Ports, addresses, MTU and hardware address of the bridge. */
  const atBridge = async (): Promise<readonly string[]> => {
    const shown = ['link show master cbr0', 'link show cbr0', 'addr show dev cbr0'];
    const texts = await Promise.all(shown.map((words) => lab.output('node', ['ip', '-o', ...words.split(' ')])));
    return texts.join('').split('\n');
  };
  const before = await atBridge();
  for (const [family, name] of [
    ['IPv4', 'bridge-nf-call-iptables'],
    ['IPv6', 'bridge-nf-call-ip6tables'],
  ] as const) {
    await machine.sysctl(`net.bridge.${name}`, '1');
    t.match(await ask(family), { exit: 0, seen: [] });
    t.equal(await answered(family), true, `${family}, through netfilter`);
    t.match(await machine.status(), { exit: 0, seen: [] });
    t.match(
      await overBridge(),
      tested(family, () => ({ result: 'passed' })),
      `${family}, through netfilter`,
    );
    await machine.sysctl(`net.bridge.${name}`, '0');
    const seen = { kind: 'bridge', severity: 'warning', remedy: new RegExp(`sysctl -w net\\.bridge\\.${name}=1`) };
    const text = new RegExp(
      `net\\.bridge\\.${name} is 0: .* on bridge cbr0, so that answers reach the sender untranslated`,
    );
    t.match(await ask(family), { exit: 1, seen: [{ ...seen, text }] });
    t.equal(await answered(family), false, `${family}, past netfilter`);
    t.match(await machine.status(), { exit: 1, seen: [{ ...seen, text: /bridge cbr0 carries pods/ }] });
    t.match(await machine.explain(to[family], '--from', 'node'), { exit: 0, seen: [] }, 'the node is on no port');
    t.match(
      await overBridge(),
      tested(family, (lost) => (lost ? { result: 'failed', text } : { result: 'passed' })),
    );
    await machine.sysctl(`net.bridge.${name}`, '1');
  }
  await t.test('a selftest leaves nothing at the bridge', async () => {
    await eventually('nothing is left', async () => (await atBridge()).join() === before.join() || null);
  });
  await t.test('the kernel removes what a killed selftest leaves at the bridge', async (t) => {
    await machine.sysctl('net.bridge.bridge-nf-call-iptables', '0');
    const words = ['selftest', '--seconds=60', '--status-socket', machine.proxy.statusSocket];
    const child = lab.spawn('node', ['node', PROGRAM, ...words]);
    const isThere = async (): Promise<true | null> =>
      (await atBridge()).some((line) => /pme\d+-IPv6/.test(line)) || null;
    await eventually('its ports are there', isThere);
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await ended;
    // The kernel removes its namespaces one after the other.
    const hasPorts = async (): Promise<boolean> => (await atBridge()).some((line) => /\bpm[a-z]\d+-IPv/.test(line));
    await eventually('its ports are gone', async () => ((await hasPorts()) ? null : true));
    const left = (await atBridge()).filter((line) => !before.includes(line));
    t.equal(left.length, 2, 'an address of each family');
    for (const line of left)
      t.match(line, /(198\.1[89]|2001:2:).* deprecated .*valid_lft (2\d\d|300)sec preferred_lft 0sec/);
    await machine.sysctl('net.bridge.bridge-nf-call-iptables', '1');
    t.match(
      await overBridge(),
      tested('IPv4', () => ({ result: 'passed' })),
      'the next one works beside them',
    );
  });
  await t.test('an address that the bridge has stays as it is', async (t) => {
    const first = `first=$(($$ % ${SELFTEST_BLOCKS} * 32)); rest=$((first % 65536))
      ip addr add 198.$((18 + first / 65536)).$((rest / 256)).$((rest % 256 + 17))/29 dev cbr0`;
    t.match(await overBridge(first), [
      { what: 'packets of IPv4 over bridge cbr0', result: 'skipped', text: /takes no address: .*EEXIST/ },
      ...tested('IPv4', () => ({ result: 'passed' })).slice(2),
    ]);
    t.match((await atBridge()).join('\n'), /inet 198\.1[89]\.[\d.]+\/29 .*valid_lft forever/);
  });
});

t.test('forwarding of a family is reported only if Services have addresses of it', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { objects: WEB });
  const machine = new Node(lab, proxy);
  await machine.sysctl('net.ipv6.conf.all.forwarding', '0');
  t.match(await machine.status(), { exit: 1, seen: [{ text: /^net\.ipv6/ }] });
  const own = node(NODE_NAME, { addresses: Object.values(ADDRESSES.node) });
  const only = service('only', { clusterIPs: ['10.96.0.90'], ports: [{ name: '', port: 80 }] });
  await writeFile(proxy.manifestFile, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [own, only] }));
  await eventually('no warning', async () => ((await machine.status()).exit === 0 ? true : null));
  t.match(await machine.status(), { text: /^.*\nhealthy\n/, seen: [] });
  await machine.sysctl('net.ipv6.conf.all.forwarding', '1');
  await proxy.apply(WEB);
});

t.test('an address in use is reported, retried, and its recovery is logged', inFull, async (t) => {
  const lab = await Lab.start(t);
  const taken = await lab.serve('node', '0.0.0.0:10249');
  const proxy = await Proxy.start(t, lab, { objects: WEB, config: { metricsBindAddress: '0.0.0.0:10249' } });
  const machine = new Node(lab, proxy);
  t.match(await machine.status(), {
    exit: 1,
    seen: [
      { kind: 'listener', text: /^metrics are not served on 0\.0\.0\.0 port 10249: .*EADDRINUSE/, remedy: /ss -ltnp/ },
    ],
  });
  await taken.close();
  await eventually('that it is served', async () => ((await machine.status()).exit === 0 ? true : null));
  t.match(proxy.log, /cannot serve metrics on 0\.0\.0\.0 port 10249[^]*"serving metrics"/);
});

t.test('a Node with other pod CIDRs, and node ports without an address, are reported', inFull, async (t) => {
  const lab = await Lab.start(t);
  const config = { nodePortAddresses: ['172.30.0.0/16', 'fd00:172::/32'] };
  const own = node(NODE_NAME, { addresses: Object.values(ADDRESSES.node), podCIDRs: ['10.99.1.0/24'] });
  const proxy = await Proxy.start(t, lab, { objects: WEB, config, node: own });
  t.match(await new Node(lab, proxy).status(), {
    exit: 1,
    text: /\nhealthy, with 3 warnings\n/,
    seen: [
      { kind: 'cluster-cidr', text: /^the Node's podCIDRs 10\.99\.1\.0\/24 are not in clusterCIDR 10\.244\.0\.0\/16/ },
      {
        kind: 'node-ports',
        text: /^node ports of IPv4 answer on 172\.30\.0\.0\/16, and this node has no address there/,
      },
      { kind: 'node-ports', text: /^node ports of IPv6/ },
    ],
  });
});

t.test('explain names a rule that gives packets to a listening program, and no endpoint answers', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
  const objects = dualStack('web', { number: 41, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-a'] });
  const machine = new Node(lab, await Proxy.start(t, lab, { objects }));
  const listener = lab.spawn('node', ['python3', '-c', TRANSPARENT]);
  t.teardown(() => listener.kill('SIGKILL'));
  const printed = createInterface(listener.stdout)[Symbol.asyncIterator]();
  t.equal((await printed.next()).value, 'listening');
  for (const words of ['rule add fwmark 1 lookup 100', 'route add local 0.0.0.0/0 dev lo table 100'])
    await lab.output('node', ['ip', ...words.split(' ')]);
  const rule = 'ip daddr 10.96.0.41 tcp dport 80 tproxy to :8099 meta mark set 1 accept';
  const chain = `chain f { type filter hook prerouting priority -150; ${rule}; }`;
  await lab.output('node', ['nft', '-f', '-'], `table ip wall { ${chain}; }`);
  const text = /give it to a program on this node, if one listens \(tproxy\): rule 1 of chain f of table ip wall/;
  t.match(await machine.explain('10.96.0.41:80', '--from', '10.244.1.11%veth-b'), {
    exit: 1,
    seen: [{ kind: 'foreign-rules', severity: 'warning', text }],
  });
  t.notMatch(await lab.request({ from: 'pod-b', to: '10.96.0.41:80', timeoutMs: 1000 }), { at: /./ }, 'no endpoint');
  await lab.output('node', ['nft', 'delete', 'table', 'ip', 'wall']);
  t.match(await lab.request({ from: 'pod-b', to: '10.96.0.41:80' }), { name: 'pod-a' }, 'without the rule');
});

/** Listens for what tproxy gives it. */
const TRANSPARENT = `
import socket
listener = socket.socket()
listener.setsockopt(socket.SOL_IP, 19, 1)
listener.bind(('0.0.0.0', 8099))
listener.listen()
print('listening', flush=True)
import time
time.sleep(1000)
`;
