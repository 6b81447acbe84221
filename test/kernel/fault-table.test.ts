// From a fault to its cause: each is made, and one command names it, with the value seen and the remedy.
// needs: nft, iptables
import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { usually } from '../support/extent.js';
import { Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { endpointSlice, node, type Manifest } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { PROGRAM } from '../support/program.js';
import {
  faultsFromTheStart,
  faultsThatEndStarts,
  folderOf,
  laterFaults,
  without,
  type Fault,
  type Scene,
} from './fault-scene.js';
import { revive, silence } from './silence.js';

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
  ...dualStack('part', { number: 45, ports: PORTS, endpoints: ['pod-a'] }),
  endpointSlice('part', [{ address: '10.244.1.256' }], [{ name: 'http', port: 8080 }], { name: 'part-bad' }),
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
    name: 'no route to Services',
    make: (at) => ip(at, 'route', 'del', 'default'),
    undo: (at) => ip(at, 'route', 'add', 'default', 'via', ADDRESSES.router.IPv4),
    command: ['status'],
    says: [
      /there is no route to the Service address 10\.96\.\d+\.\d+: ENETUNREACH/,
      /remedy: give the node a default route/,
    ],
  },
  {
    name: 'two Services on one address',
    make: () => Promise.resolve(),
    command: ['explain', '--from', '10.244.1.11%veth-b', '198.51.100.7:80'],
    exit: 0,
    says: [
      /conflict .*default\/same:http does not get it/,
      /remedy: give one of them another address or port \(kubectl -n default edit service same\)/,
    ],
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
    name: 'a slice without the port of the Service',
    make: () => Promise.resolve(),
    command: ['explain', '10.96.0.43:80'],
    says: [/not used: 1 of slice lost\S*: it has no port of this name and protocol/],
  },
  {
    name: 'a slice that is left out',
    make: () => Promise.resolve(),
    command: ['services', 'part'],
    says: [/part-bad.*10\.244\.1\.256/],
  },
  {
    name: 'a file that becomes broken',
    make: (at) => writeFile(join(folderOf(at), 'more.yaml'), 'kind: [Service'),
    undo: (at) => writeFile(join(folderOf(at), 'more.yaml'), ''),
    command: ['status'],
    says: [/a manifest is not used, .*more\.yaml: document 1: is no YAML/, /remedy: correct the file/],
  },
  {
    name: 'a configuration that becomes broken',
    make: async ({ proxy: { configFile } }) => {
      await rename(configFile, `${configFile}.good`);
      await writeFile(configFile, 'mode: [nftables');
    },
    undo: ({ proxy: { configFile } }) => rename(`${configFile}.good`, configFile),
    command: ['status'],
    says: [
      /changed configuration files are refused for \d+ s, .*config\.json: line 1: unexpected end of the stream/,
      /remedy: correct the file/,
    ],
  },
];

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
    inFull: true,
    make: ({ lab }) => lab.serve('node', '127.0.0.1:10249'),
    command: ['status'],
    says: [/metrics are not served on 127\.0\.0\.1 port 10249: .*EADDRINUSE/, /remedy: see who has the port/],
  },
  {
    name: 'the port for health checks is taken',
    make: ({ lab }) => lab.serve('node', '0.0.0.0:10256'),
    command: ['status'],
    says: [/health checks are not served on \S+ port 10256: .*EADDRINUSE/, /remedy: see who has the port/],
  },
  {
    name: 'a file that cannot be read, from the start',
    options: { launcher: without('dac_override', 'dac_read_search') },
    make: async (at) => {
      await at.proxy.write(OBJECTS);
      await writeFile(join(folderOf(at), 'more.yaml'), 'kind: Service', { mode: 0 });
    },
    command: ['status'],
    says: [/a manifest is not used, .*more\.yaml: .*EACCES/, /remedy: /],
  },
  {
    name: 'a change log that cannot be written, as on a full disk',
    inFull: true,
    options: { flags: ['--change-log-path', '/sys/pointsman/changes.log'] },
    make: () => Promise.resolve(),
    command: ['status'],
    says: [/healthy, with 1 warning/, /--change-log-path: lines are lost: E/, /remedy: free the disk/],
  },
  {
    name: 'a file that is broken from the start',
    inFull: true,
    make: async (at) => {
      await at.proxy.write(OBJECTS);
      await writeFile(join(folderOf(at), 'more.yaml'), 'kind: [Service');
    },
    command: ['status'],
    says: [/a manifest is not used, .*more\.yaml: document 1: is no YAML/, /remedy: correct the file/],
  },
  ...(['nftables', 'iptables-legacy'] as const).map((mode: LabMode): Fault => ({
    name: `no CAP_NET_ADMIN in mode ${mode}`,
    ...(mode === 'nftables' ? {} : { inFull: true }),
    options: { launcher: without('net_admin'), mode },
    make: () => Promise.resolve(),
    command: ['status'],
    says: [/rules of IPv4 and IPv6 cannot be written, .*(?:EPERM|Permission denied)/, /remedy: .*CAP_NET_ADMIN/],
  })),
];

t.test('table of faults: faults of a running proxy are named', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'remote-a'], [[8080, 'TCP']]);
  await laterFaults(t, { lab, proxy: await Proxy.start(t, lab, { objects: OBJECTS }) }, LATER);
});

t.test('table of faults: faults from the start are named', async (t) => {
  await faultsFromTheStart(
    t,
    OBJECTS,
    usually(
      FROM_THE_START.filter(({ inFull }) => inFull !== true),
      FROM_THE_START,
    ),
  );
});

t.test('table of faults: faults that prevent the start are named', async (t) => {
  const lab = await Lab.start(t);
  const at = { lab, proxy: await Proxy.prepare(t, lab) };
  await at.proxy.write(OBJECTS);
  const folder = t.testdir({ 'broken.yaml': 'mode: [nftables', secret: '' });
  const secret = join(folder, 'secret');
  await chmod(secret, 0);
  await faultsThatEndStarts(t, at, [
    {
      name: 'no CAP_NET_ADMIN in mode iptables, flavour nft',
      by: without('net_admin'),
      flags: ['--proxy-mode', 'iptables', '--iptables-flavor', 'nft'],
      says: [/found no iptables-nft-restore that works .*Permission denied/, /it takes root and CAP_NET_ADMIN/],
    },
    {
      name: 'no ip_vs in mode ipvs',
      flags: ['--proxy-mode', 'ipvs'],
      says: [/this kernel has no match .* xt_ipvs/, /modprobe -a ip_vs xt_ipvs xt_set, or use mode nftables/],
    },
    {
      name: 'a broken configuration',
      flags: ['--config', join(folder, 'broken.yaml')],
      says: [/broken\.yaml: line 1: unexpected end of the stream/],
    },
    {
      name: 'a configuration that cannot be read',
      by: without('dac_override', 'dac_read_search'),
      flags: ['--config', secret],
      says: [/could not read configuration file "\S+secret": EACCES/],
    },
    {
      name: 'a broken kubeconfig',
      flags: ['--kubeconfig', join(folder, 'broken.yaml')],
      says: [/broken\.yaml.*: is no YAML/],
    },
    {
      name: 'a kubeconfig that cannot be read',
      by: without('dac_override', 'dac_read_search'),
      flags: ['--kubeconfig', secret],
      says: [/secret.*EACCES/],
    },
  ]);
});
