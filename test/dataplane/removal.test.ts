import t from 'tap';
import { addressBytes, parseAddress, type Family } from '../../src/base/ip.js';
import type { OwnFootprint } from '../../src/dataplane/removal/footprint.js';
import { IPTABLES } from '../../src/dataplane/iptables/mode.js';
import { ruleTarget, tableRemoval } from '../../src/dataplane/removal/chains.js';
import { removeLeftovers, type LeftoverAddon } from '../../src/dataplane/removal/remove.js';
import { Remains, type LeftoverChains } from '../../src/dataplane/removal/remains.js';
import { footprintsOn } from '../../src/dataplane/modes.js';
import { NFTABLES } from '../../src/dataplane/nftables/mode.js';
import type {
  IpsetListing,
  IpsetOperation,
  IptablesChainListing,
  IptablesTable,
  IptablesTransaction,
  IpvsListedService,
  IpvsOperation,
  IpvsService,
  NftTransaction,
  TimeoutPolicy,
} from '../../src/native/contract.js';
import { KernelError } from '../support/fake-kernel/kernel-error.js';

type Chains = Readonly<Record<string, readonly string[]>>;

/** Chains with their rules; built-in ones are those without a dash. */
function listing(chains: Chains, table: IptablesTable = 'nat'): readonly IptablesChainListing[] {
  return Object.entries(chains).map(([name, rules]) => ({
    table,
    name,
    policy: /^[A-Z]+$/.test(name) ? 'ACCEPT' : null,
    ruleCount: rules.length,
    digest: '0000000000000000',
    rules,
  }));
}

const OWN = {
  nftables: { footprint: NFTABLES.footprint, flavor: null },
  nft: { footprint: IPTABLES.footprint, flavor: 'nft' },
  legacy: { footprint: IPTABLES.footprint, flavor: 'legacy' },
} as const satisfies Record<string, OwnFootprint>;

/** What is a leftover in the nft flavour. */
function leftoversBeside(own: OwnFootprint): LeftoverChains {
  return new Remains(footprintsOn('linux'), own).chainsIn('nft');
}

/** What is removed, as text. */
function removed(chains: Chains, own: OwnFootprint = OWN.nftables, table: IptablesTable = 'nat'): readonly string[] {
  return tableRemoval(table, listing(chains, table), leftoversBeside(own)).operations.map((operation) =>
    operation.type === 'rule' ? `${operation.chain} ${operation.text}` : operation.chain,
  );
}

t.test('the jump target of a rule is parsed', (t) => {
  t.equal(ruleTarget('-p tcp -m comment --comment "a -j B \\" -j C" -j D'), 'D');
  t.equal(ruleTarget('-j MARK --set-xmark 0x4000/0x0'), 'MARK');
  t.equal(ruleTarget('-g OTHER'), 'OTHER');
  t.equal(ruleTarget('-m comment --comment "-j NOWHERE"'), null);
  t.end();
});

t.test('chains and jumps of kube-proxy are removed, those of kubelet and others stay', (t) => {
  t.same(
    removed({
      PREROUTING: ['-j KUBE-SERVICES', '-p tcp -m comment --comment x -j KUBE-SERVICES', '-j OTHER-CHAIN'],
      POSTROUTING: ['-j KUBE-POSTROUTING'],
      'KUBE-SERVICES': ['-j KUBE-SVC-A'],
      'KUBE-SVC-A': ['-j KUBE-SEP-B'],
      'KUBE-SEP-B': ['-j KUBE-MARK-MASQ'],
      'KUBE-MARK-MASQ': [],
      'KUBE-POSTROUTING': [],
      'KUBE-PROXY-CANARY': [],
      'KUBE-KUBELET-CANARY': [],
      'KUBE-MARK-DROP': [],
      'OTHER-CHAIN': ['-j RETURN'],
    }),
    [
      'PREROUTING -j KUBE-SERVICES',
      'PREROUTING -p tcp -m comment --comment x -j KUBE-SERVICES',
      'POSTROUTING -j KUBE-POSTROUTING',
      'KUBE-SERVICES',
      'KUBE-SVC-A',
      'KUBE-SEP-B',
      'KUBE-MARK-MASQ',
      'KUBE-POSTROUTING',
      'KUBE-PROXY-CANARY',
    ],
  );
  t.same(
    removed({ INPUT: ['-j KUBE-FIREWALL'], 'KUBE-FIREWALL': [], 'KUBE-SVC-A': [] }, OWN.nftables, 'filter'),
    [],
    'names mean something in their table only',
  );
  t.end();
});

t.test('chains that foreign rules jump to stay, with all their targets', (t) => {
  const chains: Chains = {
    OUTPUT: ['-j KUBE-SERVICES', '-j KUBE-SVC-A'],
    POSTROUTING: ['-j KUBE-POSTROUTING'],
    'KUBE-SERVICES': ['-j KUBE-SVC-A', '-j KUBE-SVC-C'],
    'KUBE-SVC-A': ['-j KUBE-SEP-B'],
    'KUBE-SEP-B': [],
    'KUBE-SVC-C': [],
    'KUBE-MARK-MASQ': [],
    'KUBE-POSTROUTING': [],
    'CNI-SETMARK': ['-j KUBE-MARK-MASQ'],
  };
  t.same(removed(chains), ['OUTPUT -j KUBE-SERVICES', 'KUBE-SERVICES', 'KUBE-SVC-C']);
  t.same(
    [...tableRemoval('nat', listing(chains), leftoversBeside(OWN.nftables)).kept],
    [
      ['KUBE-SVC-A', 'OUTPUT'],
      ['KUBE-SEP-B', 'KUBE-SVC-A'],
      ['KUBE-MARK-MASQ', 'CNI-SETMARK'],
      ['KUBE-POSTROUTING', 'KUBE-MARK-MASQ'],
    ],
  );
  t.end();
});

t.test('in iptables mode, only what ipvs mode alone uses is removed', (t) => {
  const chains: Chains = {
    INPUT: ['-j KUBE-IPVS-FILTER', '-j KUBE-PROXY-FIREWALL', '-j KUBE-NODE-PORT'],
    'KUBE-IPVS-FILTER': [],
    'KUBE-PROXY-FIREWALL': ['-j KUBE-SOURCE-RANGES-FIREWALL'],
    'KUBE-SOURCE-RANGES-FIREWALL': [],
    'KUBE-NODE-PORT': [],
    'KUBE-SERVICES': [],
  };
  t.same(removed(chains, OWN.nft, 'filter'), [
    'INPUT -j KUBE-IPVS-FILTER',
    'INPUT -j KUBE-NODE-PORT',
    'KUBE-IPVS-FILTER',
    'KUBE-NODE-PORT',
  ]);
  t.same(
    [...tableRemoval('filter', listing(chains, 'filter'), leftoversBeside(OWN.nft)).kept.keys()],
    ['KUBE-SOURCE-RANGES-FIREWALL'],
  );
  t.end();
});

/** A node in memory with what is given and nothing else. */
class FakeNode implements LeftoverAddon {
  readonly iptables = this;
  readonly nftables = this;
  readonly ipvs = this;
  readonly ipset = this;
  readonly route = this;
  readonly timeouts = this;
  chains: readonly IptablesChainListing[] = [];
  services: IpvsListedService[] = [];
  /** By port. */
  readonly connections = new Map<number, number>();
  sets: string[] = [];
  readonly portSets = new Map<string, IpsetListing>();
  addresses: readonly string[] | null = null;
  tables: string[] = [];
  /** Timeout policies by name; null: the kernel has none. */
  policies: string[] | null = [];
  failing: string | null = null;
  readonly restored: IptablesTransaction[] = [];
  readonly textOf: (readonly string[])[] = [];

  async iptablesFlavors() {
    await Promise.resolve();
    return [{ flavor: 'nft', version: '1.8.9' }] as const;
  }

  async iptablesList(_family: string, _flavor: string, _tables: unknown, textOf: readonly string[]) {
    await Promise.resolve();
    if (this.failing === 'iptables') throw new Error('no listing');
    this.textOf.push(textOf);
    return this.chains.map((chain) => {
      const isRead = chain.policy !== null || textOf.some((prefix) => chain.name.startsWith(prefix));
      return { ...chain, rules: isRead ? chain.rules : null };
    });
  }

  async iptablesRestore(transaction: IptablesTransaction) {
    await Promise.resolve();
    this.restored.push(transaction);
    return { bytes: 0, rules: 0 };
  }

  async nftList(family: string, table: string) {
    await Promise.resolve();
    return this.tables.includes(`${family} ${table}`) ? { chains: [], sets: [], objects: [] } : null;
  }

  async nftTransact({ family, table }: NftTransaction) {
    await Promise.resolve();
    this.tables = this.tables.filter((each) => each !== `${family} ${table}`);
    return { messages: 2, bytes: 0 };
  }

  async ipvsServices(family: Family) {
    await Promise.resolve();
    return this.services.filter((service) => service.family === family);
  }

  async ipvsDestinations(services: readonly IpvsService[]) {
    await Promise.resolve();
    return services.map(({ port }) => ({
      endpoints: new Uint8Array(6),
      weights: Uint32Array.of(1),
      connections: Uint32Array.of(this.connections.get(port) ?? 0),
      methods: Uint8Array.of(0),
      bounded: Uint8Array.of(0),
    }));
  }

  async ipvsApply(operations: readonly IpvsOperation[]) {
    await Promise.resolve();
    const gone = new Set(operations.map(({ service }) => service.port));
    this.services = this.services.filter(({ port }) => !gone.has(port));
    return { refused: [], bytes: 0 };
  }

  async ipsetNames() {
    await Promise.resolve();
    return this.sets;
  }

  async ipsetList(names: readonly string[]) {
    await Promise.resolve();
    return names.map((name) => this.portSets.get(name) ?? null);
  }

  async allAddresses() {
    await Promise.resolve();
    return [
      { link: 'kube-ipvs0', ipv4: Buffer.concat(this.addresses?.map(bytes) ?? []), ipv6: new Uint8Array() },
      { link: 'eth0', ipv4: bytes('192.168.0.2'), ipv6: bytes('2001:db8::1') },
    ];
  }

  async ipsetApply(operations: readonly IpsetOperation[]) {
    await Promise.resolve();
    const names = operations.map((operation) => ('name' in operation ? operation.name : operation.set.name));
    this.sets = this.sets.filter((each) => each === this.failing || !names.includes(each));
    const refused = names.flatMap((object, index) =>
      object === this.failing ? new KernelError('EBUSY', 'ipset apply', { object, index, element: null }) : [],
    );
    return { refused, bytes: 0 };
  }

  async timeoutList(): Promise<readonly TimeoutPolicy[]> {
    await Promise.resolve();
    if (this.policies === null)
      throw new KernelError('EINVAL', 'timeout list', { object: null, index: null, element: null });
    return this.policies.map((name) => ({ name, family: 'IPv4', protocol: 6, seconds: [] }));
  }

  async timeoutDelete(name: string) {
    await Promise.resolve();
    this.policies = this.policies?.filter((each) => each !== name) ?? null;
    return true;
  }

  async linkAddresses() {
    await Promise.resolve();
    return this.addresses?.map(bytes) ?? null;
  }

  async linkDelete() {
    await Promise.resolve();
    const isThere = this.addresses !== null;
    this.addresses = null;
    return isThere;
  }
}

function bytes(address: string): Uint8Array {
  const parsed = parseAddress(address);
  if (parsed === null) throw new Error(address);
  return addressBytes(parsed);
}

function virtual(address: string | null, port: number): IpvsListedService {
  const mark = address === null ? 7 : 0;
  const state = { scheduler: 'rr', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  return { protocol: 6, family: 'IPv4', address: address === null ? null : bytes(address), port, mark, ...state };
}

const remove = (node: FakeNode, own: OwnFootprint | null = OWN.nftables) =>
  removeLeftovers(node, ['IPv4'], footprintsOn('linux'), own);

t.test('timeout policies are removed after the rules that name them, and foreign ones stay', async (t) => {
  const node = new FakeNode();
  const mine = ['Kt01', 'KU02'];
  node.policies = [...mine, 'Kt1', 'others'];
  t.same((await remove(node)).removed, [], 'where no chains are left nothing is asked');
  t.same((await remove(node, null)).removed, ['conntrack: 2 timeout policies'], '--cleanup asks');
  t.same(node.policies, ['Kt1', 'others']);
  node.policies = [...mine];
  node.chains = listing({ 'KUBE-RETRY': [] }, 'raw');
  t.same((await remove(node, OWN.nft)).removed, [], 'they are of the mode in force');
  t.match((await remove(node)).removed, [/1 chains/, 'conntrack: 2 timeout policies']);
  node.policies = null;
  t.match(await remove(node), { problems: [] }, 'a kernel without them');
});

t.test('a node without leftovers is not changed', async (t) => {
  const node = new FakeNode();
  node.chains = listing({ OUTPUT: ['-j OTHER-CHAIN'], 'OTHER-CHAIN': [], 'KUBE-FIREWALL': [] });
  node.services = [virtual('192.168.0.100', 80), virtual('192.168.0.2', 30001)];
  node.sets = ['KUBE-OWN-OF-OTHERS', 'cali40all'];
  node.tables = ['ip kube-proxy'];
  t.same(await remove(node), {
    removed: [],
    kept: [],
    waiting: [],
    problems: [],
    goneFlows: new Map(),
    freesSysctls: false,
  });
  t.same([node.services.length, node.sets.length, node.restored.length, node.tables.length], [2, 2, 0, 1]);
  t.same(node.textOf, [[]], 'no rule was read');
});

t.test('rules of single Services are listed only if a foreign rule uses one', async (t) => {
  const node = new FakeNode();
  const chains = { OUTPUT: ['-j KUBE-SERVICES'], 'KUBE-SERVICES': ['-j KUBE-SVC-A'], 'KUBE-SVC-A': ['-j KUBE-SEP-B'] };
  node.chains = listing({ ...chains, 'KUBE-SEP-B': [] });
  t.same((await remove(node)).removed, ['iptables (nft) IPv4: 3 chains, 1 jumps to them']);
  t.same(node.textOf.at(-1), ['OUTPUT', 'KUBE-SERVICES']);
  node.chains = listing({ ...chains, 'KUBE-SEP-B': [], 'OTHER-CHAIN': ['-j KUBE-SVC-A'] });
  const report = await remove(node);
  t.same(report.kept, [
    'iptables (nft) IPv4 nat chain KUBE-SVC-A, which OTHER-CHAIN leads to',
    'iptables (nft) IPv4 nat chain KUBE-SEP-B, which KUBE-SVC-A leads to',
  ]);
  t.same(
    node.restored.at(-1)?.operations.map(({ chain }) => chain),
    ['OUTPUT', 'KUBE-SERVICES'],
  );
});

t.test('more chains than a call takes arguments are removed', async (t) => {
  const node = new FakeNode();
  const count = 130_000;
  const chain: IptablesChainListing = { table: 'nat', name: '', policy: null, ruleCount: 0, digest: '', rules: [] };
  node.chains = Array.from({ length: count }, (_, number) => ({ ...chain, name: `KUBE-SEP-${number}` }));
  const { removed, problems } = await remove(node);
  t.same(problems, []);
  t.same(removed, [`iptables (nft) IPv4: ${count} chains, 0 jumps to them`]);
});

t.test(
  "ipvs: kube-proxy's virtual services are removed when their connections have ended, then the link",
  async (t) => {
    const node = new FakeNode();
    node.addresses = ['10.96.0.1', '10.96.0.10'];
    node.services = [
      virtual('10.96.0.1', 443),
      virtual('10.96.0.10', 53),
      virtual('192.168.0.2', 30001),
      virtual('192.168.0.100', 80),
      virtual(null, 0),
    ];
    node.connections.set(53, 5);
    node.sets = ['KUBE-CLUSTER-IP', 'KUBE-6-IPVS-IPS', 'OTHER'];
    const report = await remove(node);
    t.same(report.removed, ['ipvs: 2 virtual services']);
    t.same(report.waiting, ['ipvs: virtual services that still have connections']);
    t.same(
      node.services.map(({ port }) => port),
      [53, 80, 0],
    );
    t.not(node.addresses, null);
    t.same((await remove(node, null)).removed, ['ipvs: 1 virtual services', 'link kube-ipvs0', 'ipset: 2 sets']);
    t.same(node.sets, ['OTHER']);
    t.same(
      node.services.map(({ port }) => port),
      [80, 0],
      'those of others stay even then',
    );
  },
);

t.test("ipvs: node ports are those in a set or the default range, on the node's own addresses", async (t) => {
  const node = new FakeNode();
  node.addresses = ['10.96.0.1'];
  const name = 'KUBE-NODE-PORT-LOCAL-TCP';
  node.sets = [name];
  node.portSets.set(name, {
    name,
    type: 'bitmap:port',
    family: null,
    hashSize: 0,
    maxElements: 0,
    comments: true,
    ports: null,
    plain: true,
    references: 0,
    elements: Uint8Array.of(0x1f, 0x90, 0x23, 0x28),
    elementComments: null,
    counters: false,
    elementPackets: null,
  });
  const udp = { ...virtual('192.168.0.2', 9000), protocol: 17 };
  node.services = [
    virtual('192.168.0.2', 8080),
    virtual('192.168.0.2', 30001),
    virtual('192.168.0.2', 443),
    virtual('192.168.0.100', 30002),
    udp,
  ];
  t.same((await remove(node, null)).removed, ['ipvs: 2 virtual services', 'link kube-ipvs0', 'ipset: 1 sets']);
  t.same(
    node.services.map(({ port }) => port),
    [443, 30002, 9000],
  );
});

t.test('a removal that fails is reported, and the rest is removed', async (t) => {
  const node = new FakeNode();
  node.sets = ['KUBE-CLUSTER-IP', 'KUBE-LOOP-BACK'];
  node.failing = 'KUBE-CLUSTER-IP';
  const sets = await remove(node);
  t.same(
    [sets.removed, sets.problems.map(String)],
    [['ipset: 1 sets'], ['KernelError: ipset apply: EBUSY at KUBE-CLUSTER-IP']],
  );
  node.failing = 'iptables';
  const chains = await remove(node);
  t.same([chains.removed, chains.problems.map(String)], [['ipset: 1 sets'], ['Error: no listing']]);
});

t.test("in iptables mode the nftables table is a leftover, and pointsman's own chains are not", async (t) => {
  const node = new FakeNode();
  node.tables = ['ip kube-proxy', 'ip other'];
  node.chains = listing({ OUTPUT: ['-j KUBE-SERVICES'], 'KUBE-SERVICES': [], 'KUBE-LOAD-BALANCER': [] });
  const own = await remove(node, OWN.nft);
  t.same(own.removed, ['iptables (nft) IPv4: 1 chains, 0 jumps to them', 'nftables: table ip kube-proxy']);
  t.same(node.tables, ['ip other']);
  const other = await remove(node, OWN.legacy);
  t.same(other.removed, ['iptables (nft) IPv4: 2 chains, 1 jumps to them']);
});

t.test('chains that only older releases of kube-proxy made are removed', (t) => {
  const chains: Chains = { 'KUBE-XLB-A': [], 'KUBE-SEP-B': [], 'KUBE-SVC-HAIRPIN': [] };
  t.same(removed(chains), Object.keys(chains));
  t.same(removed(chains, OWN.nft), []);
  t.end();
});

t.test('without an active mode everything is removed', async (t) => {
  const node = new FakeNode();
  node.tables = ['ip kube-proxy', 'ip other'];
  node.chains = listing({ OUTPUT: ['-j KUBE-SERVICES'], 'KUBE-SERVICES': [], 'KUBE-LOAD-BALANCER': [] });
  const { removed: gone } = await remove(node, null);
  t.same(gone, ['iptables (nft) IPv4: 2 chains, 1 jumps to them', 'nftables: table ip kube-proxy']);
  t.same(node.tables, ['ip other']);
});
