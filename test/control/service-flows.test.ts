// What the kernel says of flows, counted for Services: whose they are, how many are told apart, what goes with a Service.
import t, { type Test } from 'tap';
import { addressBytes } from '../../src/base/ip.js';
import { protocolNumber, type Protocol } from '../../src/base/protocol.js';
import { ServiceFlows } from '../../src/control/service-flows.js';
import { FLOW_SUM, FLOW_WAY, type FlowSums } from '../../src/native/contract.js';
import { ServiceSeries, type SeriesLimits } from '../../src/observe/telemetry/service-series.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import type { Row } from '../../src/state/rows.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { address, node, service, slice } from '../support/rows.js';

interface Way {
  readonly to: readonly [address: string, port: number];
  readonly by: readonly [address: string, port: number];
  readonly protocol?: Protocol;
  /** As FLOW_SUM; one flow of nothing when not given. */
  readonly sum?: readonly number[];
}

function sumsOf(ways: readonly Way[], more: Partial<FlowSums> = {}): FlowSums {
  const records = new Uint8Array(ways.length * FLOW_WAY.size);
  const sums = new Float64Array(ways.length * FLOW_SUM.length);
  for (const [row, { to, by, protocol = 'TCP', sum = [1] }] of ways.entries()) {
    const record = records.subarray(row * FLOW_WAY.size);
    const place = (text: string, port: number, at: number, portAt: number): void => {
      const bytes = addressBytes(address(text));
      record.set(bytes, at);
      record.set([port >> 8, port & 0xff], portAt);
      record[FLOW_WAY.addressLength] = bytes.length;
    };
    place(...to, FLOW_WAY.destination, FLOW_WAY.destinationPort);
    place(...by, FLOW_WAY.source, FLOW_WAY.sourcePort);
    record[FLOW_WAY.protocol] = protocolNumber(protocol);
    sums.set(sum, row * FLOW_SUM.length);
  }
  const leftOut = new Float64Array(FLOW_SUM.length);
  return { count: ways.length, ways: records, sums, leftOut, overruns: 0, living: 0, ...more };
}

/** The kernel's answers, one after the other. */
class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly series: ServiceSeries;
  readonly flows: ServiceFlows;
  answers: (FlowSums | Error)[] = [sumsOf([])];
  takes = 0;
  /** How long the next takes. */
  takeMs = 1;
  readonly tables;
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings({ nodeName: 'me' }));

  constructor(limits: Partial<SeriesLimits> = {}) {
    this.series = new ServiceSeries({ endpoints: true, max: 100, ...limits });
    this.tables = this.planner.tables;
    this.flows = new ServiceFlows({
      counter: {
        take: async () => {
          this.takes++;
          const answer = this.answers.shift() ?? sumsOf([]);
          await this.clock.advance(this.takeMs);
          if (answer instanceof Error) throw answer;
          return answer;
        },
        stop: () => undefined,
      },
      tables: Object.values(this.tables),
      localAddresses: () => ['192.168.0.2', 'fd00::2'].map(address),
      series: this.series,
      log: this.log,
      clock: this.clock,
    });
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    this.plan();
  }

  remove(namespace: string, name: string): void {
    this.writer.apply([{ type: 'remove', ref: { kind: 'Service', namespace, name } }]);
    this.plan();
  }

  /** What came since, counted. */
  async count(ways: readonly Way[], more: Partial<FlowSums> = {}): Promise<void> {
    this.answers = [sumsOf(ways, more)];
    await this.clock.advance(1000);
    await this.flows.collect();
  }

  /** The values of a metric, by its labels but `ip_family`, as `a/b/c`. */
  values(name: string): Readonly<Record<string, number>> {
    const families = [...this.series.families(), ...this.flows.families()];
    const found = families.filter((family) => family.name === `pointsman_service_${name}`);
    return Object.fromEntries(
      found.flatMap(({ values }) => values.map(({ labels, value }) => [Object.values(labels).join('/'), value])),
    );
  }

  private plan(): void {
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }
}

const WEB = service('web', {
  clusterIPs: ['10.96.0.10', 'fd00:96::a'],
  ports: [
    { name: 'http', port: 80, nodePort: 30080 },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
});
const SLICE = slice('web', [{ address: '10.0.0.1' }, { address: '10.0.0.2' }], {
  ports: [
    { name: 'http', port: 8080, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
});

async function begun(t: Test, limits?: Partial<SeriesLimits>): Promise<Scene> {
  const scene = new Scene(limits);
  t.teardown(() => {
    scene.flows.stop();
  });
  await scene.flows.start();
  scene.put(node('me', ['192.168.0.2']), WEB, SLICE);
  return scene;
}

t.test('flows are counted for the Service port of the address, or node port, that clients used', async (t) => {
  const scene = await begun(t);
  await scene.count([
    { to: ['10.96.0.10', 80], by: ['10.0.0.1', 8080], sum: [2, 12, 900, 10, 5000] },
    { to: ['192.168.0.2', 30080], by: ['10.0.0.1', 8080], sum: [1, 6, 400, 5, 2000] },
    { to: ['10.96.0.10', 80], by: ['10.0.0.2', 8080] },
    { to: ['fd00:96::a', 80], by: ['fd00::1', 8080] },
    { to: ['10.96.0.10', 53], by: ['10.0.0.2', 53], protocol: 'UDP', sum: [3] },
    // Of others: another port, a node port's number elsewhere, another protocol, an address of nobody.
    { to: ['10.96.0.10', 81], by: ['10.0.0.2', 8080] },
    { to: ['192.168.0.9', 30080], by: ['10.0.0.2', 8080] },
    { to: ['192.168.0.2', 30080], by: ['10.0.0.2', 8080], protocol: 'SCTP' },
    { to: ['198.51.100.1', 80], by: ['10.0.0.2', 8080], sum: [5] },
  ]);
  t.same(scene.values('connections_total'), { 'default/web/http/TCP': 5, 'default/web/dns/UDP': 3 });
  t.same(scene.values('packets_total'), {
    'default/web/http/TCP/request': 18,
    'default/web/http/TCP/reply': 15,
    'default/web/dns/UDP/request': 0,
    'default/web/dns/UDP/reply': 0,
  });
  t.match(scene.values('bytes_total'), {
    'default/web/http/TCP/request': 1300,
    'default/web/http/TCP/reply': 7000,
  });
  t.same(scene.values('endpoint_connections_total'), {
    'default/web/http/TCP/10.0.0.1:8080': 3,
    'default/web/http/TCP/10.0.0.2:8080': 1,
    'default/web/http/TCP/[fd00::1]:8080': 1,
    'default/web/dns/UDP/10.0.0.2:53': 3,
  });
  t.same(scene.values('telemetry_unattributed_connections_total'), { '': 8 });
  t.match(scene.series.trafficOf('default/web'), [
    {
      port: 'http',
      protocol: 'TCP',
      connections: 5,
      replyBytes: 7000,
      endpoints: [{ endpoint: '10.0.0.1:8080' }, {}, {}],
    },
    { port: 'dns', protocol: 'UDP', connections: 3 },
  ]);
  await scene.count([{ to: ['10.96.0.10', 80], by: ['10.0.0.1', 8080], sum: [0, 4, 100, 4, 100] }]);
  t.equal(scene.values('connections_total')['default/web/http/TCP'], 5, 'a connection counts once');
  t.equal(scene.values('packets_total')['default/web/http/TCP/request'], 22, 'and all that it carries');
});

t.test('a deleted Service and a removed endpoint lose their metrics', async (t) => {
  const scene = await begun(t);
  await scene.count([
    { to: ['10.96.0.10', 80], by: ['10.0.0.1', 8080] },
    { to: ['10.96.0.10', 80], by: ['10.0.0.2', 8080] },
  ]);
  const fewer = slice('web', [{ address: '10.0.0.2' }], { ports: [{ name: 'http', port: 8080, protocol: 'TCP' }] });
  scene.put({ ...fewer, name: SLICE.name });
  const changed = scene.tables.IPv4.frontend('10.96.0.10:80/TCP');
  if (changed === undefined) throw new Error('it has no frontend');
  scene.flows.frontendChanged(changed);
  await scene.count([]);
  t.same(scene.values('endpoint_connections_total'), { 'default/web/http/TCP/10.0.0.2:8080': 1 });
  t.equal(scene.values('connections_total')['default/web/http/TCP'], 2, 'the Service port has all of them');
  scene.remove('default', 'web');
  await scene.count([]);
  t.same(scene.values('connections_total'), {});
  t.same(scene.values('endpoint_connections_total'), {});
});

t.test('of 10,000 frontends only the limit get own metrics, and the sum is complete', async (t) => {
  const scene = await begun(t, { max: 100 });
  const addresses = Array.from({ length: 10_000 }, (_, index) => `10.97.${index >> 8}.${index & 255}`);
  scene.put(...addresses.map((own, index) => service(`many-${index}`, { clusterIPs: [own] })));
  const ways: Way[] = addresses.map((own) => ({ to: [own, 80], by: ['10.0.0.1', 8080] }));
  for (let round = 0; round < 2; round++) {
    await scene.count(ways);
    const connections = scene.values('connections_total');
    t.equal(Object.keys(connections).length, 101);
    t.equal(connections['_other/_other/_other/_other'], 9900 * (round + 1));
    t.equal(Object.keys(scene.values('endpoint_connections_total')).length, 100);
  }
  for (let index = 0; index < 50; index++) scene.remove('default', `many-${index}`);
  await scene.count([]);
  await scene.count(ways);
  t.equal(Object.keys(scene.values('connections_total')).length, 101, 'who is gone makes room');
  const many: Way[] = Array.from({ length: 300 }, (_, index) => ({
    to: ['10.97.1.0', 80],
    by: [`10.1.${index >> 8}.${index & 255}`, 8080],
  }));
  await scene.count(many);
  const endpoints = scene.values('endpoint_connections_total');
  t.ok(Object.keys(endpoints).length <= 101);
});

t.test('counts that could not be read in time are reported, and an unresponsive kernel is reported once', async (t) => {
  const scene = await begun(t);
  await scene.count([], { overruns: 2, leftOut: Float64Array.of(7, 0, 0, 0, 0), living: 3 });
  t.same(scene.values('telemetry_overruns_total'), { '': 2 });
  t.same(scene.values('telemetry_left_out_connections_total'), { '': 7 });
  t.same(scene.values('telemetry_flows'), { '': 3 });
  for (const answer of ['no', 'no', 'never']) {
    scene.answers = [new Error(answer)];
    await scene.clock.advance(1000);
    await scene.flows.collect();
  }
  t.equal(scene.log.lines.filter((line) => line.includes('cannot count flows')).length, 2);
});

t.test('flows through rules of an earlier process are counted once there is a plan', async (t) => {
  const scene = new Scene();
  await scene.flows.start();
  t.equal(scene.takes, 1, 'what was there before is known at once');
  await scene.count([]);
  t.equal(scene.takes, 1);
  scene.put(node('me', ['192.168.0.2']), WEB, SLICE);
  await scene.count([{ to: ['10.96.0.10', 80], by: ['10.0.0.1', 8080] }]);
  t.same(scene.values('connections_total'), { 'default/web/http/TCP': 1 });
  scene.remove('default', 'web');
  await scene.count([]);
  t.same(scene.values('connections_total'), {}, 'and the last Service leaves as any other');
  scene.flows.stop();
});

t.test('a delayed listing of flows does not delay the following ones', async (t) => {
  const scene = new Scene();
  t.teardown(() => {
    scene.flows.stop();
  });
  scene.takeMs = 20_000;
  await scene.flows.start();
  scene.put(node('me', ['192.168.0.2']), WEB, SLICE);
  for (const [expected, takeMs] of [
    [1, 1],
    [2, 20_000],
    [3, 1],
  ] as const) {
    scene.takeMs = takeMs;
    await scene.count([{ to: ['10.96.0.10', 80], by: ['10.0.0.1', 8080] }]);
    t.same(scene.values('connections_total'), { 'default/web/http/TCP': expected });
  }
});

t.test('listing flows takes a hundredth of the time, however often metrics are scraped', async (t) => {
  const scene = await begun(t);
  const before = scene.takes;
  await scene.clock.advance(100);
  await Promise.all([scene.flows.collect(), scene.flows.collect()]);
  t.equal(scene.takes, before + 1, 'who asks meanwhile waits for the same');
  await scene.flows.collect();
  t.equal(scene.takes, before + 1, 'who asks at once has it already');
  await scene.clock.advance(31_000);
  t.equal(scene.takes, before + 2, 'and once in a while it is done without being asked');
  scene.flows.stop();
  await scene.clock.advance(100_000);
  t.equal(scene.takes, before + 2);
});
