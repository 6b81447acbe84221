// From a fault to its cause: each is made, and one command names it, with the value seen and the remedy.
// needs: nft, iptables
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { eventually, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { endpointSlice, node, type Manifest } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy, type ProxyOptions } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { PROGRAM } from '../support/program.js';
import { revive, silence } from './silence.js';

interface Scene {
  readonly lab: Lab;
  readonly proxy: Proxy;
}

interface Fault {
  readonly name: string;
  /** A process of its own that is started with it; undefined: one that was well before. */
  readonly options?: ProxyOptions;
  /** Before the process starts, if it has one of its own. */
  readonly make: (scene: Scene) => Promise<unknown>;
  readonly undo?: (scene: Scene) => Promise<unknown>;
  /** A command that asks the process. */
  readonly command: readonly string[];
  /** What it says: the cause with its value, and the remedy if it is not the same. */
  readonly says: readonly RegExp[];
}

const PORTS = [{ name: 'http', port: 80, targetPort: 8080 }] as const;
const OBJECTS: readonly Manifest[] = [
  ...dualStack('web', { number: 41, externals: [7], ports: PORTS, endpoints: ['pod-a'] }),
  ...dualStack('same', {
    number: 42,
    externals: [7],
    ports: PORTS,
    endpoints: ['pod-a'],
    creationTimestamp: '2025-01-01T00:00:00Z',
  }),
  ...dualStack('lost', { number: 43, ports: PORTS, endpoints: [] }),
  endpointSlice('lost', [{ address: ADDRESSES['pod-a'].IPv4 }], [{ name: 'https', port: 8443 }]),
  ...dualStack('far', { number: 44, ports: PORTS, endpoints: ['remote-a'] }),
];

const nft = ({ lab }: Scene, text: string): Promise<string> => lab.output('node', ['nft', '-f', '-'], text);
const ip = ({ lab }: Scene, ...words: readonly string[]): Promise<string> => lab.output('node', ['ip', ...words]);
const sysctl = ({ lab }: Scene, key: string, value: string): Promise<string> => lab.sysctl('node', key, value);
const wall = (hook: string, rule: string): string =>
  `table inet wall { chain f { type filter hook ${hook}; policy accept; ${rule} drop; }; }`;
const noWall = (scene: Scene): Promise<string> => nft(scene, 'delete table inet wall');
const EXPLAIN = ['explain', '--from', '10.244.1.11%veth-b', '10.96.0.41:80'] as const;

/** Of a process that was well. */
const LATER: readonly Fault[] = [
  {
    name: 'the node does not forward',
    make: (at) => sysctl(at, 'net/ipv4/conf/all/forwarding', '0'),
    undo: (at) => sysctl(at, 'net/ipv4/conf/all/forwarding', '1'),
    command: ['status'],
    says: [/net\.ipv4\.ip_forward is 0/, /remedy: sysctl -w net\.ipv4\.ip_forward=1/],
  },
  {
    name: 'nftables rules of others, before ours',
    make: (at) => nft(at, wall('prerouting priority -300', 'ip daddr 10.96.0.41')),
    undo: noWall,
    command: EXPLAIN,
    says: [
      /rules of others drop it: rule 1 of chain f of table inet wall, at hook prerouting, priority -300/,
      /remedy: see nft/,
    ],
  },
  {
    name: 'nftables rules of others, after ours',
    make: (at) => nft(at, wall('forward priority 10', 'tcp dport 8080')),
    undo: noWall,
    command: EXPLAIN,
    says: [
      /rules of others drop it: rule 1 of chain f of table inet wall, at hook forward, priority 10/,
      /remedy: see nft/,
    ],
  },
  ...(['nft', 'legacy'] as const).flatMap((flavor): readonly Fault[] =>
    (['PREROUTING', 'FORWARD'] as const).map((chain) => {
      const table = chain === 'FORWARD' ? 'filter' : 'mangle';
      const program = `iptables-${flavor}`;
      const rule = [chain, '-p', 'tcp', '--dport', chain === 'FORWARD' ? '8080' : '80', '-j', 'DROP'];
      return {
        name: `${program} rules of others in ${chain}`,
        make: ({ lab }) => lab.output('node', [program, '-w', '-t', table, '-A', ...rule]),
        undo: ({ lab }) => lab.output('node', [program, '-w', '-t', table, '-D', ...rule]),
        command: EXPLAIN,
        says: [new RegExp(`rules of others drop it: rule 1 of chain ${chain}`), /remedy: see (?:nft|iptables-legacy)/],
      };
    }),
  ),
  {
    name: 'no route to an endpoint',
    make: (at) => ip(at, 'route', 'add', 'unreachable', '10.244.2.10/32'),
    undo: (at) => ip(at, 'route', 'del', 'unreachable', '10.244.2.10/32'),
    command: ['explain', '--from', '10.244.1.11%veth-b', '10.96.0.44:80'],
    says: [/there is no route to endpoint 10\.244\.2\.10/, /remedy: .*ip route get 10\.244\.2\.10/],
  },
  {
    name: 'nobody answers on the endpoint',
    make: async ({ lab }) => {
      await lab.run('node', [PROGRAM, ...EXPLAIN]);
      await silence(lab, 'pod-a');
      for (let attempt = 0; attempt < 4; attempt++)
        await lab.request({ from: 'pod-b', to: '10.96.0.41:80', timeoutMs: 300 });
    },
    undo: ({ lab }) => revive(lab, 'pod-a'),
    command: EXPLAIN,
    says: [/10\.244\.1\.10:8080 answered none of its last \d+ connection attempts/, /remedy: /],
  },
  {
    name: 'two Services on one address',
    make: () => Promise.resolve(),
    command: ['explain', '198.51.100.7:80'],
    says: [/conflict .*default\/same:http does not get it/],
  },
  {
    name: 'a slice that is left out',
    make: () => Promise.resolve(),
    command: ['explain', '10.96.0.43:80'],
    says: [/not used: 1 of slice lost\S*: it has no port of this name and protocol/],
  },
  {
    name: 'a file that cannot be read any more',
    make: ({ proxy }) => writeFile(join(dirname(proxy.manifestFile), 'more.yaml'), 'kind: [Service'),
    undo: ({ proxy }) => writeFile(join(dirname(proxy.manifestFile), 'more.yaml'), ''),
    command: ['status'],
    says: [/a manifest is not used, .*more\.yaml: document 1: is no YAML/, /remedy: correct the file/],
  },
];

const bound = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];

/** With a process of its own. */
const FROM_THE_START: readonly Fault[] = [
  {
    name: 'a wrong clusterCIDR',
    options: {
      config: { clusterCIDR: '10.99.0.0/16,fd00:99::/48' },
      node: node(NODE_NAME, {
        addresses: Object.values(ADDRESSES.node),
        podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
      }),
    },
    make: () => Promise.resolve(),
    command: ['status'],
    says: [
      /podCIDRs 10\.244\.1\.0\/24, fd00:244:1::\/64 are not in clusterCIDR 10\.99\.0\.0\/16,fd00:99::\/48/,
      /remedy: set clusterCIDR/,
    ],
  },
  {
    name: 'a wrong node name',
    options: { config: { hostnameOverride: 'node-9' } },
    make: () => Promise.resolve(),
    command: ['status'],
    says: [/there is no Node "node-9"/, /remedy: set --hostname-override/],
  },
  {
    name: 'the port for metrics is taken',
    make: ({ lab }) => lab.serve('node', '127.0.0.1:10249'),
    command: ['status'],
    says: [/metrics are not served on 127\.0\.0\.1 port 10249: .*EADDRINUSE/, /remedy: see who has the port/],
  },
  {
    name: 'a file that is broken from the start',
    make: async ({ proxy }) => {
      await proxy.write(OBJECTS);
      await writeFile(join(dirname(proxy.manifestFile), 'more.yaml'), 'kind: [Service');
    },
    command: ['status'],
    says: [/a manifest is not used, .*more\.yaml: document 1: is no YAML/, /remedy: correct the file/],
  },
  ...(['nftables', 'iptables-legacy'] as const).map((mode: LabMode): Fault => ({
    name: `no CAP_NET_ADMIN in mode ${mode}`,
    options: { launcher: bound, mode },
    make: () => Promise.resolve(),
    command: ['status'],
    says: [/EPERM|Permission denied/],
  })),
];

async function check(t: Test, scene: Scene, { command, says }: Fault): Promise<void> {
  let text = '';
  const isSaid = async (): Promise<true | null> => {
    const words = [PROGRAM, ...command, '--status-socket', scene.proxy.statusSocket];
    const { status, stdout, stderr } = await scene.lab.run('node', words);
    text = `${stdout}${stderr}`;
    return status === 1 && says.every((each) => each.test(text)) ? true : null;
  };
  await eventually('the fault is named', isSaid, 20_000).catch(() => undefined);
  for (const each of says) t.match(text, each);
  if (!t.passing()) t.comment(text);
}

t.test('of a process that was well', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'remote-a'], [[8080, 'TCP']]);
  const at = { lab, proxy: await Proxy.start(t, lab, { objects: OBJECTS }) };
  for (const fault of LATER)
    await t.test(fault.name, async (t) => {
      await fault.make(at);
      await check(t, at, fault);
      await fault.undo?.(at);
    });
});

t.test('from the start', async (t) => {
  for (const fault of FROM_THE_START)
    await t.test(fault.name, async (t) => {
      const lab = await Lab.start(t);
      const at = { lab, proxy: await Proxy.prepare(t, lab, fault.options) };
      await at.proxy.write(OBJECTS);
      await fault.make(at);
      at.proxy.launch();
      await check(t, at, fault);
    });
});

/** Faults that end a start: a command that does what a start would says the same. */
const NO_START: readonly (Pick<Fault, 'name' | 'says'> & {
  readonly by?: readonly string[];
  readonly mode: readonly string[];
})[] = [
  {
    name: 'no CAP_NET_ADMIN in mode iptables, flavour nft',
    by: bound,
    mode: ['--proxy-mode', 'iptables', '--iptables-flavor', 'nft'],
    says: [/found no iptables-nft-restore that works .*Permission denied/, /it takes root and CAP_NET_ADMIN/],
  },
  {
    name: 'no CAP_NET_ADMIN in mode nftables',
    by: bound,
    mode: ['--proxy-mode', 'nftables'],
    says: [/EPERM|not permitted/],
  },
  { name: 'no ip_vs in mode ipvs', mode: ['--proxy-mode', 'ipvs'], says: [/ip_vs/] },
];

t.test('of what cannot start', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.prepare(t, lab);
  await proxy.write(OBJECTS);
  for (const { name, by = [], mode, says } of NO_START)
    await t.test(name, async (t) => {
      const objects = ['--manifests', dirname(proxy.manifestFile), '--hostname-override', NODE_NAME];
      const { status, stdout, stderr } = await lab.run('node', [...by, PROGRAM, 'diff', ...mode, ...objects]);
      t.equal(status, 2);
      for (const each of says) t.match(`${stdout}${stderr}`, each);
    });
});
