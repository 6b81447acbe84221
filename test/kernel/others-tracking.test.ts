// Decisions of other programs about the tracking of packets stay in force: NodeLocal DNSCache, helpers, zones (docs/differences.md).
// needs: iptables, nft, conntrack
import t, { type Test } from 'tap';
import type { Protocol } from '../../src/base/protocol.js';
import { usually } from '../support/extent.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { configuredMode, labMode, type LabMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { iptablesRules, type PeerService } from '../support/lab/peer-iptables.js';
import { Proxy } from '../support/lab/proxy.js';
import { NETWORK, type NetworkDescription } from '../support/lab/topology.js';

type Flavor = 'nft' | 'legacy';

const IS_IPVS = labMode().startsWith('ipvs');

const PROTOCOLS = ['UDP', 'TCP'] as const satisfies readonly Protocol[];
const DNS_PORTS = PROTOCOLS.map((protocol) => ({ name: `dns-${protocol.toLowerCase()}`, port: 53, protocol }));
const DNS_PODS = ['pod-a', 'remote-a'] as const;
const CLUSTER_DNS = 10;
const UPSTREAM = 11;
const LOCAL_DNS = { IPv4: '169.254.20.10', IPv6: 'fd00:169:254::a' } as const;
const HEALTH_PORT = 8080;

/** The Service that pods ask, and the one by which the cache reaches the same pods. */
const DNS_OBJECTS = [
  ...dualStack('kube-dns', { number: CLUSTER_DNS, ports: DNS_PORTS, endpoints: DNS_PODS }),
  ...dualStack('kube-dns-upstream', { number: UPSTREAM, ports: DNS_PORTS, endpoints: DNS_PODS }),
];
const PEER_SERVICES: readonly PeerService[] = [CLUSTER_DNS, UPSTREAM].flatMap((number) =>
  PROTOCOLS.map((protocol) => ({
    name: `kube-system/dns-${number}:${protocol}`,
    protocol: protocol === 'UDP' ? 'udp' : 'tcp',
    number,
    port: 53,
    pods: DNS_PODS,
  })),
);

/** The link of the cache, with the addresses that it answers on. */
const WITH_LOCAL_LINK: NetworkDescription = {
  ...NETWORK,
  node: {
    ...NETWORK['node'],
    interfaces: {
      ...NETWORK['node']?.interfaces,
      nodelocaldns: {
        bridge: true,
        addresses: FAMILY_VIEWS.flatMap((view) =>
          cacheAddresses(view).map((address) => `${address}/${view.family === 'IPv4' ? 32 : 128}`),
        ),
      },
    },
  },
};

/** In mode ipvs the Service's address belongs to the proxy's own link, so that the cache is set up without it. */
function cacheAddresses(view: FamilyView): readonly string[] {
  return [LOCAL_DNS[view.family], ...(IS_IPVS ? [] : [view.clusterIP(CLUSTER_DNS)])];
}

/** The rules of NodeLocal DNSCache for one of its addresses, in the order in which it puts each at the head of its chain. */
function cacheRules(address: string): readonly (readonly [table: string, chain: string, rule: string])[] {
  const dns = PROTOCOLS.map((protocol) => `-p ${protocol.toLowerCase()}`);
  return [
    ...dns.map((p) => ['raw', 'PREROUTING', `${p} -d ${address} --dport 53 -j NOTRACK`] as const),
    ...dns.map((p) => ['filter', 'INPUT', `${p} -d ${address} --dport 53 -j ACCEPT`] as const),
    ...dns.map((p) => ['raw', 'OUTPUT', `${p} -s ${address} --sport 53 -j NOTRACK`] as const),
    ...dns.map((p) => ['filter', 'OUTPUT', `${p} -s ${address} --sport 53 -j ACCEPT`] as const),
    ...dns.map((p) => ['raw', 'OUTPUT', `${p} -d ${address} --dport 53 -j NOTRACK`] as const),
    ['raw', 'OUTPUT', `-p tcp -d ${address} --dport ${HEALTH_PORT} -j NOTRACK`],
    ['raw', 'OUTPUT', `-p tcp -s ${address} --sport ${HEALTH_PORT} -j NOTRACK`],
  ];
}

/** A firewall of the host that lets nothing through that is not tracked: only the cache's own rules accept its packets. */
const HOST_FIREWALL = `*filter
-A INPUT -p udp --dport 53 -m conntrack --ctstate UNTRACKED -j DROP
-A INPUT -p tcp --dport 53 -m conntrack --ctstate UNTRACKED -j DROP
-A OUTPUT -p udp --sport 53 -m conntrack --ctstate UNTRACKED -j DROP
-A OUTPUT -p tcp --sport 53 -m conntrack --ctstate UNTRACKED -j DROP
COMMIT
`;

interface Question {
  readonly from: string;
  readonly to: (view: FamilyView) => string;
  readonly protocol: Protocol;
  readonly answeredBy: readonly string[];
}

const QUESTIONS: readonly Question[] = [
  ...['pod-b', 'pod-c', 'node'].flatMap((from) =>
    PROTOCOLS.flatMap((protocol): Question[] => [
      {
        from,
        to: (view) => endpoint(view.clusterIP(CLUSTER_DNS), 53),
        protocol,
        answeredBy: IS_IPVS ? DNS_PODS : ['cache'],
      },
      { from, to: (view) => endpoint(LOCAL_DNS[view.family], 53), protocol, answeredBy: ['cache'] },
    ]),
  ),
  ...PROTOCOLS.map((protocol): Question => ({
    from: 'node',
    to: (view) => endpoint(view.clusterIP(UPSTREAM), 53),
    protocol,
    answeredBy: DNS_PODS,
  })),
  {
    from: 'node',
    to: (view) => endpoint(LOCAL_DNS[view.family], HEALTH_PORT),
    protocol: 'TCP',
    answeredBy: ['cache'],
  },
];

/** A node with the cache, beside a proxy. */
class CachedNode {
  private constructor(
    private readonly t: Test,
    readonly lab: Lab,
    private readonly flavor: Flavor,
  ) {}

  static async start(t: Test, flavor: Flavor, by: 'iptables' | 'native rules' = 'iptables'): Promise<CachedNode> {
    const lab = await Lab.start(t, WITH_LOCAL_LINK);
    const node = new CachedNode(t, lab, flavor);
    await lab.serveAll(
      [...DNS_PODS],
      PROTOCOLS.map((protocol) => [53, protocol]),
    );
    for (const view of FAMILY_VIEWS) {
      for (const address of cacheAddresses(view))
        for (const protocol of PROTOCOLS) await lab.serve('node', endpoint(address, 53), protocol, 'cache');
      await lab.serve('node', endpoint(LOCAL_DNS[view.family], HEALTH_PORT), 'TCP', 'cache');
    }
    if (by === 'native rules') return node;
    await node.restore(() => HOST_FIREWALL);
    await node.startCache();
    return node;
  }

  private async restore(rules: (view: FamilyView) => string): Promise<void> {
    for (const view of FAMILY_VIEWS)
      await this.lab.output('node', [`${program(view, this.flavor)}-restore`, '--noflush', '-w', '30'], rules(view));
  }

  /** Each rule by a call of its own, as the cache does; another program may put its rules at the end. */
  async cacheRules(verb: '-I' | '-A' | '-D'): Promise<void> {
    for (const view of FAMILY_VIEWS)
      for (const address of cacheAddresses(view))
        for (const [table, chain, rule] of cacheRules(address))
          await this.lab.output('node', [
            program(view, this.flavor),
            '-w',
            '30',
            '-t',
            table,
            verb,
            chain,
            ...rule.split(' '),
          ]);
  }

  startCache(): Promise<void> {
    return this.cacheRules('-I');
  }

  stopCache(): Promise<void> {
    return this.cacheRules('-D');
  }

  async startPeer(): Promise<void> {
    await this.restore((view) => iptablesRules(view, PEER_SERVICES));
  }

  /** The last rule of each chain of table raw. */
  async lastRules(): Promise<readonly string[]> {
    const last: string[] = [];
    for (const view of FAMILY_VIEWS) {
      const listed = await this.lab.output('node', [`${program(view, this.flavor)}-save`, '-t', 'raw']);
      for (const chain of ['PREROUTING', 'OUTPUT'])
        last.push(listed.split('\n').findLast((line) => line.startsWith(`-A ${chain} `)) ?? '');
    }
    return last;
  }

  async check(state: string): Promise<void> {
    const { t, lab } = this;
    for (const view of FAMILY_VIEWS) {
      const answers = await Promise.all(
        QUESTIONS.map(({ from, to, protocol }) => lab.request({ from, to: to(view), protocol })),
      );
      for (const [index, { from, to, protocol, answeredBy }] of QUESTIONS.entries()) {
        const answer = answers[index];
        const name = answer === undefined ? '' : 'name' in answer ? answer.name : answer.error;
        t.ok(answeredBy.includes(name), `${state}: ${from} to ${to(view)}/${protocol} is answered by ${name}`);
      }
      const tracked = (await lab.flows(view.family)).filter((line) =>
        cacheAddresses(view).some((address) => line.includes(` dst=${address} `)),
      );
      t.same(tracked, [], `${state}: no packet of the cache is tracked, ${view.family}`);
    }
  }
}

function program({ family }: FamilyView, flavor: Flavor): string {
  return `${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${flavor}`;
}

const LIVES: readonly { readonly flavor: Flavor; readonly modes: readonly [LabMode, ...LabMode[]] }[] = [
  { flavor: 'nft', modes: ['iptables-nft', 'nftables', 'iptables-nft'] },
  { flavor: 'legacy', modes: ['nftables', 'iptables-legacy', 'nftables', 'iptables-legacy'] },
  { flavor: 'legacy', modes: ['iptables-legacy'] },
];
const LIVES_IN_IPVS: typeof LIVES = [{ flavor: 'legacy', modes: ['ipvs-legacy'] }];

for (const { flavor, modes } of IS_IPVS ? LIVES_IN_IPVS : usually(LIVES.slice(0, 1), LIVES)) {
  t.test(`NodeLocal DNSCache answers through takeover and rollback, ${flavor}: ${modes.join()}`, async (t) => {
    const node = await CachedNode.start(t, flavor);
    await node.startPeer();
    await node.check('kube-proxy');
    const proxy = await Proxy.start(t, node.lab, {
      objects: DNS_OBJECTS,
      mode: modes[0],
      flags: modes[0] === 'nftables' ? ['--iptables-flavor', flavor] : [],
    });
    await node.check(`takeover in mode ${proxy.mode}`);
    for (const mode of modes) {
      await proxy.useMode(mode);
      await eventually(`mode ${mode}`, async () => inMode(proxy, mode));
      await node.check(`in mode ${proxy.mode}`);
      await proxy.stop('SIGTERM');
      await node.check(`stopped in mode ${proxy.mode}`);
      await node.startPeer();
      await node.check(`kube-proxy beside the rules of mode ${proxy.mode}`);
      await proxy.restart();
      await node.check(`restarted in mode ${proxy.mode}`);
    }
    await node.stopCache();
    await node.startCache();
    await node.check('the cache has started again');
    if (!IS_IPVS) {
      await node.stopCache();
      await node.cacheRules('-A');
      await eventually(
        'our jumps are last',
        async () => (await node.lastRules()).every((rule) => rule.endsWith('-j KUBE-RETRY')) || null,
      );
      await node.stopCache();
      await node.startCache();
    }
    await proxy.consistent();
    await proxy.stop('SIGTERM');
    t.equal((await proxy.run(null, ['--cleanup'])).status, 0);
    await node.startPeer();
    await node.check('rolled back to kube-proxy');
  });
}

async function inMode(proxy: Proxy, mode: LabMode): Promise<true | null> {
  const { mode: found } = await proxy.status();
  return found === configuredMode(mode).name ? true : null;
}

/** One port whose connections others give a helper, and one whose packets they put in a zone of their own, each way. */
const DECIDED_PORTS = [
  { name: 'ftp', port: 21 },
  { name: 'zone', port: 80 },
];
const OTHERS = 41;

/** As table raw has it. */
function decisions(view: FamilyView): string {
  const [client, pod, service] = [view.address('pod-c'), view.address('remote-a'), view.clusterIP(OTHERS)];
  return `*raw
-A PREROUTING -d ${service} -p tcp --dport 21 -j CT --helper ftp
-A OUTPUT -d ${service} -p tcp --dport 21 -j CT --helper ftp
-A PREROUTING -s ${client} -d ${service} -p tcp --dport 80 -j CT --zone 7
-A OUTPUT -d ${service} -p tcp --dport 80 -j CT --zone 7
-A PREROUTING -s ${pod} -p tcp --sport 80 -j CT --zone 7
COMMIT
`;
}

for (const mode of IS_IPVS
  ? []
  : usually(['iptables-nft'] as const, ['iptables-nft', 'iptables-legacy', 'nftables'] as const)) {
  const flavor = mode === 'iptables-legacy' ? 'legacy' : 'nft';
  t.test(`helpers and zones of others stay in force, ${mode}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(
      ['remote-a'],
      [
        [21, 'TCP'],
        [80, 'TCP'],
      ],
    );
    for (const view of FAMILY_VIEWS)
      await lab.output('node', [`${program(view, flavor)}-restore`, '--noflush', '-w', '30'], decisions(view));
    const objects = dualStack('web', { number: OTHERS, ports: DECIDED_PORTS, endpoints: ['remote-a'] });
    const proxy = await Proxy.start(t, lab, { mode, objects });
    for (const state of ['started', 'restarted']) {
      if (state === 'restarted') await proxy.restart();
      for (const view of FAMILY_VIEWS)
        for (const from of ['pod-c', 'node'])
          for (const [port, shown] of [
            [21, 'helper=ftp'],
            [80, 'zone=7'],
          ] as const) {
            await lab.output('node', ['conntrack', '-F']);
            const connection = await lab.open({ from, to: endpoint(view.clusterIP(OTHERS), port) });
            t.match(await connection.exchange(), { name: 'remote-a' }, `${state}: from ${from}`);
            const flow = (await lab.flows(view.family)).find((line) => line.includes(`dst=${view.clusterIP(OTHERS)} `));
            t.match(flow, shown, `${state}: a connection from ${from} to port ${port}`);
            await connection.close();
          }
    }
  });
}

/** Native rules of nftables that decide as the cache's do. */
function nativeRules(priority: number): string {
  const chains = FAMILY_VIEWS.flatMap((view) => {
    const ip = view.family === 'IPv4' ? 'ip' : 'ip6';
    const addresses = `{ ${cacheAddresses(view).join(', ')} }`;
    const to = `${ip} daddr ${addresses} meta l4proto { tcp, udp } th dport`;
    const from = `${ip} saddr ${addresses} meta l4proto { tcp, udp } th sport`;
    return [
      `add rule inet cache in ${to} 53 notrack`,
      `add rule inet cache out ${to} { 53, ${HEALTH_PORT} } notrack`,
      `add rule inet cache out ${from} { 53, ${HEALTH_PORT} } notrack`,
    ];
  });
  return `
add table inet cache
add chain inet cache in { type filter hook prerouting priority ${priority}; }
add chain inet cache out { type filter hook output priority ${priority}; }
${chains.join('\n')}
`;
}

/** Behind table raw, and where it depends on which chain was registered first, we leave the packets alone. */
const PRIORITIES = [
  { priority: -310, isLater: false },
  { priority: -300, isLater: true },
  { priority: -290, isLater: true },
] as const;

for (const { flavor, cases } of IS_IPVS
  ? []
  : usually(
      [{ flavor: 'nft', cases: PRIORITIES.slice(2) }] as const,
      [
        { flavor: 'nft', cases: PRIORITIES },
        { flavor: 'legacy', cases: PRIORITIES.slice(1) },
      ] as const,
    )) {
  for (const { priority, isLater } of cases) {
    t.test(
      `native rules at priority ${priority} that take packets out of tracking stay in force, ${flavor}`,
      async (t) => {
        const node = await CachedNode.start(t, flavor, 'native rules');
        const { lab } = node;
        await lab.output('node', ['nft', '-f', '-'], nativeRules(priority));
        const config = { nftables: { syncPeriod: '1s' } };
        const proxy = await Proxy.start(t, lab, { mode: `iptables-${flavor}`, objects: DNS_OBJECTS, config });
        const limited = async (): Promise<boolean> =>
          (await proxy.status()).families.every(({ limitations }) =>
            limitations.some((text) => text.includes('table inet cache decides which packets are tracked')),
          );
        const hasJumps = async (): Promise<boolean> =>
          (await node.lastRules()).every((rule) => rule.endsWith('-j KUBE-RETRY'));
        t.equal(await limited(), isLater);
        t.equal(await hasJumps(), !isLater);
        await node.check('beside native rules');
        await lab.output('node', ['nft', 'delete', 'table', 'inet', 'cache']);
        await eventually('attempts are retried without them', async () => (await hasJumps()) || null);
        await lab.output('node', ['nft', '-f', '-'], nativeRules(priority));
        await eventually('native rules are found', async () => ((await limited()) === isLater ? true : null));
        await lab.output('node', ['conntrack', '-F']);
        await node.check('native rules have come back');
      },
    );
  }
}

t.test('native rules that take packets out of tracking stay in force, nftables', { skip: IS_IPVS }, async (t) => {
  const node = await CachedNode.start(t, 'nft', 'native rules');
  await node.lab.output('node', ['nft', '-f', '-'], nativeRules(-300));
  const proxy = await Proxy.start(t, node.lab, { mode: 'nftables', objects: DNS_OBJECTS });
  await node.check('beside native rules');
  // Whichever chain was registered first.
  await node.lab.output('node', ['nft', 'delete', 'table', 'inet', 'cache']);
  await node.lab.output('node', ['nft', '-f', '-'], nativeRules(-290));
  await node.lab.output('node', ['conntrack', '-F']);
  await node.check('native rules have come back');
  await proxy.consistent();
});
