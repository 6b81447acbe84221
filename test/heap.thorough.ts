// Services of every kind, each by a name, addresses and annotations of its own, come and go through plan and dataplane: the process remembers none of them.
// POINTSMAN_HEAP_SERVICES says how many of each kind, of which one wave after the other comes.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { translateEndpointSlice } from '../src/sources/translate/endpoint-slice.js';
import { Interner } from '../src/sources/translate/intern.js';
import { translateService } from '../src/sources/translate/service.js';
import { refOf, type Row, type RowRef } from '../src/state/rows.js';
import type { ApiObject } from './support/api-objects.js';
import { differences, entriesOf } from './support/collections.js';
import { KERNELSPACE_STORIES } from './support/fake-hns/world.js';
import { rememberAtMost } from './support/fake-kernel/compiler.js';
import { NFTABLES_STORIES } from './support/fake-kernel/world.js';
import { serviceCIDR } from './support/rows.js';
import { parseStory } from './support/scenario-file.js';
import { LINUX_STORIES, SCENARIO_MODES } from './support/scenario-modes.js';
import { ScenarioProcess } from './support/scenario-process.js';
import type { ScenarioMode, ScenarioWorld } from './support/scenario-world.js';

rememberAtMost(1000);

/** Of each kind, in all waves. */
const SERVICES = Number(process.env['POINTSMAN_HEAP_SERVICES'] ?? 1000);
/** Of each kind in a wave: the fakes take the longer for each the more there are. */
const AT_ONCE = 10;
/** The heap may grow until half of them were there: tables that are bounded fill up, and code is compiled. */
const WAVES = Math.ceil(SERVICES / AT_ONCE);
/** What is remembered of a Service takes more. */
const MOST_BYTES_OF_SERVICE = 40;
/** What V8 notes of the code that runs. */
const MOST_BYTES = 1024 * 1024;
/** Of each of two kinds that have chains of their own in mode nftables, and what all of them may leave. */
const WITH_CHAINS = 1500;
const MOST_BYTES_WITH_CHAINS = 3 * 1024 * 1024;
/** After which nothing of what is gone is waited for: retries, drains, objects that linger. */
const QUIET_MS = 60_000;

/**
 * What has a bound that other tests look at: of recent and of slow syncs, and of states of virtual services. Of timeout policies there is one for each number of
 * seconds that a Service may ask for; those that no rule names go with the next full sync.
 */
const BOUNDED = /\.(?:recentSyncs|slowestSyncs|desired\.states|policies)\b/;

const usual = readFileSync('test/scenarios/usual-cluster', 'utf8');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function heap(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    // What a weak reference was asked for stays until the end of a turn of the event loop.
    await new Promise(setImmediate);
    collect();
  }
  return process.memoryUsage().heapUsed;
}

/** What a Service of a kind has besides name, addresses and a port. */
interface Kind {
  readonly spec?: ApiObject;
  readonly annotations?: ApiObject;
  readonly ofSlice?: ApiObject;
  /** TCP when absent. */
  readonly protocol?: string;
  readonly ingress?: string;
  readonly families?: readonly ('IPv4' | 'IPv6')[];
  /** None when absent: those of the kind, of this node and of another one. */
  readonly endpoints?: 0;
  /** Absent: it has no node port. */
  readonly nodePort?: true;
}

/** Numbers are those of the Service; what is made of them is its own among 60,000. */
const KINDS = {
  'of a cluster address': () => ({}),
  headless: () => ({ spec: { clusterIP: 'None', clusterIPs: ['None'] } }),
  'of UDP': () => ({ protocol: 'UDP' }),
  'of SCTP': () => ({ protocol: 'SCTP' }),
  'of both families': () => ({ families: ['IPv4', 'IPv6'] }),
  'of IPv6': () => ({ families: ['IPv6'], spec: affinity(10_800) }),
  'without endpoints': () => ({ endpoints: 0 }),
  'of pods of this node': () => ({ spec: { internalTrafficPolicy: 'Local' } }),
  'that remembers clients': (number) => ({ spec: affinity(1 + number) }),
  'of an external address': (number) => ({ spec: { externalIPs: [external(number)], ...affinity(60 + number) } }),
  'of an external address that others have': () => ({ spec: { externalIPs: ['192.0.2.1'] } }),
  'of node ports': () => ({ spec: { type: 'NodePort' }, nodePort: true }),
  'of UDP node ports for pods of this node': () => ({
    protocol: 'UDP',
    nodePort: true,
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
  }),
  'of a load balancer for some': (number) => ({
    ingress: external(number),
    nodePort: true,
    spec: { type: 'LoadBalancer', loadBalancerSourceRanges: [`${external(number)}/32`, '10.0.0.0/8'] },
  }),
  'of a load balancer that remembers clients': (number) => ({
    ingress: external(number),
    nodePort: true,
    spec: { type: 'LoadBalancer', ...affinity(60 + number) },
  }),
  'of a load balancer for pods of this node': (number) => ({
    ingress: external(number),
    nodePort: true,
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 40_000 + (number % 20_000) },
  }),
  'of weights': (number) => ({ ofSlice: { 'pointsman.dev/weight': String(1 + (number % 50)) } }),
  'balanced by clients': () => ({ annotations: { 'pointsman.dev/balance': 'hash=address' } }),
  'of zones': (number) => ({
    annotations: {
      'pointsman.dev/zone': 'spill',
      'pointsman.dev/zone-clients': `zone-a=${1 + (number % 90)},zone-z${number}=9`,
    },
  }),
  'that starts slowly': (number) => ({ annotations: { 'pointsman.dev/slow-start': `${1 + (number % 40)}s` } }),
  'that tries again': (number) => ({ annotations: { 'pointsman.dev/connect-retry': `${2 + (number % 30)}s` } }),
  'that tries again by UDP': (number) => ({
    protocol: 'UDP',
    annotations: { 'pointsman.dev/udp-retry': `${2 + (number % 30)}s` },
  }),
  'that drains': (number) => ({
    annotations: {
      'pointsman.dev/reset-removed-endpoints': 'service',
      'pointsman.dev/drain': `${1 + (number % 30)}s`,
    },
  }),
} as const satisfies Readonly<Record<string, (number: number) => Kind>>;

function affinity(seconds: number): ApiObject {
  const timeoutSeconds = 1 + (seconds % 86_400);
  return { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } };
}

function dotted(net: string, number: number): string {
  return `${net}.${(number >> 8) & 255}.${number & 255}`;
}

function external(number: number): string {
  return dotted('198.51', number);
}

/** A Service and its slices, none of which there was before. */
function next(number: number, kind: Kind, names: Interner): readonly Row[] {
  const [name, namespace, port] = [`s${number}`, `ns${number}`, `p${number}`];
  const { spec = {}, protocol = 'TCP', families = ['IPv4'], ingress, nodePort, annotations, ofSlice } = kind;
  const net = 96 + ((number >> 16) & 15);
  const clusterIPs = families.map((family) =>
    family === 'IPv4' ? dotted(`10.${net}`, number) : `fd00:10:96::${(number & 0xffff).toString(16)}`,
  );
  const { row } = translateService(
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace, annotations },
      spec: {
        clusterIP: clusterIPs[0],
        clusterIPs,
        ipFamilies: families,
        ports: [{ name: port, port: 80, protocol, ...(nodePort ? { nodePort: 1024 + (number % 38_000) } : {}) }],
        ...spec,
      },
      status: { loadBalancer: { ingress: ingress === undefined ? [] : [{ ip: ingress }] } },
    },
    names,
  );
  if (row === null) throw new Error(`no Service of ours: ${JSON.stringify(kind)}`);
  const slices = families.map((family) => {
    const addresses = [0, 1].map((index) =>
      family === 'IPv4' ? dotted(`10.${1 + index}`, number) : `fd00:10:1::${index}:${(number & 0xffff).toString(16)}`,
    );
    const translated = translateEndpointSlice(
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        addressType: family,
        metadata: {
          name: `${name}-${family.toLowerCase()}`,
          namespace,
          annotations: ofSlice,
          labels: { 'kubernetes.io/service-name': name },
        },
        ports: [{ name: port, port: 8080, protocol }],
        endpoints: (kind.endpoints === 0 ? [] : addresses).map((address, index) => ({
          addresses: [address],
          conditions: { ready: true, serving: true, terminating: false },
          nodeName: index === 0 ? 'test-node' : `node-${number}`,
          zone: `zone-${number}`,
          targetRef: { kind: 'Pod', namespace, name: `${name}-${index}` },
        })),
      },
      names,
    );
    if (translated.row === null) throw new Error('no slice of ours');
    return translated.row;
  });
  return [row, ...slices];
}

/** A process, and the kernel in which it is. */
class Node {
  readonly names = new Interner(100_000);
  private made = 0;

  private constructor(
    readonly world: ScenarioWorld,
    readonly process: ScenarioProcess,
    private readonly name: string,
  ) {}

  static async start(mode: ScenarioMode): Promise<Node> {
    const story = await parseStory('usual-cluster', { text: '', usual }, mode, SCENARIO_MODES);
    const world = mode.world(story.localAddresses);
    const process = await ScenarioProcess.start(mode, world, story);
    const node = new Node(world, process, story.settings.nodeName);
    for (const { changes } of story.steps) process.apply(changes);
    node.put([serviceCIDR('kubernetes', ['10.96.0.0/12', 'fd00:10:96::/112'])]);
    await process.sync();
    return node;
  }

  private put(rows: readonly Row[]): void {
    const changes = rows.map((row) => ({ type: 'upsert', row }) as const);
    this.world.follow?.(changes, this.name);
    this.process.apply(changes);
  }

  private remove(refs: readonly RowRef[]): void {
    const changes = refs.map((ref) => ({ type: 'remove', ref }) as const);
    this.world.follow?.(changes, this.name);
    this.process.apply(changes);
  }

  /** So many Services of each of the kinds come, lose their endpoints and get others, and go. */
  async wave(count: number, kinds: readonly ((number: number) => Kind)[]): Promise<void> {
    const rows: Row[] = [];
    for (let index = 0; index < count; index++)
      for (const kind of kinds) rows.push(...next(this.made, kind(this.made++), this.names));
    this.put(rows);
    await this.process.sync();
    const slices = rows.filter(({ kind }) => kind === 'EndpointSlice').map(refOf);
    this.remove(slices.filter((_, index) => index % 3 === 0));
    await this.process.sync();
    this.remove(rows.map(refOf));
    await this.process.sync();
    this.world.endPods?.();
    await this.process.wait(QUIET_MS);
    if (this.world.endPods !== undefined) await this.process.period(0);
    this.world.forgetCalls();
    this.process.log.lines.length = 0;
  }
}

for (const mode of [...LINUX_STORIES, KERNELSPACE_STORIES]) {
  t.test(`${mode.definition.name}: the process keeps nothing of removed Services`, async (t) => {
    const kinds = Object.values(KINDS);
    const node = await Node.start(mode);
    const outside = new Set<unknown>([node.world, node.world.addon, node.process.log]);
    const contents = (): readonly string[] => [...node.world.contents()].sort();
    let before: { readonly entries: ReturnType<typeof entriesOf>; readonly contents: readonly string[] } | null = null;
    let half = 0;
    for (let wave = 1; wave <= WAVES; wave++) {
      await node.wave(AT_ONCE, kinds);
      const now = { entries: entriesOf(node.process, outside), contents: contents() };
      before ??= now;
      const found = differences(before.entries, now.entries).filter((line) => !BOUNDED.test(line));
      t.same(found, [], `wave ${wave}`);
      t.same(now.contents, before.contents);
      t.same(node.world.leftovers(), []);
      if (wave === WAVES >> 1) half = await heap();
    }
    const grown = (await heap()) - half;
    const most = MOST_BYTES + (MOST_BYTES_OF_SERVICE * SERVICES * kinds.length) / 2;
    t.ok(grown < most, `${grown} bytes more, ${most} at most`);
  });
}

t.test('nftables: 3,000 Services that remember clients and have an external address leave no memory', async (t) => {
  const node = await Node.start(NFTABLES_STORIES);
  const kinds = [KINDS['of an external address'], KINDS['of a load balancer that remembers clients']];
  // The first ones have code compiled.
  await node.wave(AT_ONCE, kinds);
  const [before, contents] = [await heap(), [...node.world.contents()].sort()];
  for (let made = 0; made < WITH_CHAINS; made += AT_ONCE) await node.wave(AT_ONCE, kinds);
  t.same([...node.world.contents()].sort(), contents);
  t.same(node.world.leftovers(), []);
  const grown = (await heap()) - before;
  t.ok(grown < MOST_BYTES_WITH_CHAINS, `${grown} bytes more`);
});
