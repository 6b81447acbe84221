// What rules have counted of packets that they refused and dropped, counted for Services.
import t, { type Test } from 'tap';
import { ServiceRefusals } from '../../src/control/service-refusals.js';
import type { RefusedPackets } from '../../src/dataplane/contract.js';
import { ServiceSeries } from '../../src/observe/telemetry/service-series.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import type { Row } from '../../src/state/rows.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { address, service } from '../support/rows.js';

/** A kernel's answer, or that it has none. */
type Answer = readonly RefusedPackets[] | Error;

interface FakeDataplane {
  answer: Answer;
  asked: number;
  readonly refused: () => Promise<readonly RefusedPackets[]>;
}

function dataplane(answer: Answer = []): FakeDataplane {
  const made: FakeDataplane = {
    answer,
    asked: 0,
    refused: () => {
      made.asked++;
      return made.answer instanceof Error ? Promise.reject(made.answer) : Promise.resolve(made.answer);
    },
  };
  return made;
}

class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly series: ServiceSeries;
  readonly refusals: ServiceRefusals;
  /** In force, by another of the same family at any time. */
  readonly inForce = { IPv4: dataplane(), IPv6: dataplane() };
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings({ nodeName: 'me' }));

  constructor(max = 100) {
    const { planner, inForce, log, clock } = this;
    this.series = new ServiceSeries({ endpoints: false, max });
    const families = (['IPv4', 'IPv6'] as const).map((family) => ({
      table: planner.tables[family],
      get dataplane() {
        return inForce[family];
      },
    }));
    this.refusals = new ServiceRefusals({ families, series: this.series, log, clock });
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }

  remove(name: string): void {
    this.writer.apply([{ type: 'remove', ref: { kind: 'Service', namespace: 'default', name } }]);
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }

  async count(): Promise<void> {
    await this.clock.advance(1000);
    await this.refusals.collect();
  }

  /** By labels, of both verdicts. */
  get values(): Readonly<Record<string, number>> {
    const families = this.series.families().filter(({ name }) => /_(?:refused|dropped)_packets_total$/.test(name));
    return Object.fromEntries(
      families.flatMap(({ name, values }) =>
        values.map(({ labels, value }) => [[name.split('_')[2], ...Object.values(labels)].join('/'), value]),
      ),
    );
  }
}

function refused(to: string | null, port: number, packets: number, more: Partial<RefusedPackets> = {}): RefusedPackets {
  const frontend = frontendKey(to === null ? null : address(to), port, 'TCP');
  return { frontend, verdict: 'refused', reason: 'no-endpoints', packets, ...more };
}

const WEB = service('web', {
  clusterIPs: ['10.96.0.10', 'fd00:96::a'],
  ports: [{ name: 'http', port: 80, nodePort: 30080 }],
});
const SOURCE = { verdict: 'dropped', reason: 'source-range' } as const;

async function begun(t: Test, max?: number): Promise<Scene> {
  const scene = new Scene(max);
  t.teardown(() => {
    scene.refusals.stop();
  });
  await scene.refusals.start();
  scene.put(WEB);
  return scene;
}

t.test('refused packets count for the Service port of their frontend, on each address', async (t) => {
  const scene = await begun(t);
  scene.inForce.IPv4.answer = [
    refused('10.96.0.10', 80, 3),
    refused('10.96.0.10', 80, 4, SOURCE),
    refused(null, 30080, 2),
    refused('10.96.0.99', 80, 7),
  ];
  scene.inForce.IPv6.answer = [refused('fd00:96::a', 80, 1)];
  await scene.count();
  const values = {
    'refused/default/web/http/TCP/no-endpoints': 6,
    'dropped/default/web/http/TCP/source-range': 4,
  };
  t.same(scene.values, values);
  await scene.count();
  t.same(scene.values, values, 'each once');
  t.match(scene.series.trafficOf('default/web'), [
    {
      port: 'http',
      connections: 0,
      refused: [
        { verdict: 'refused', reason: 'no-endpoints', packets: 6 },
        { ...SOURCE, packets: 4 },
      ],
    },
  ]);
  scene.remove('web');
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 10)];
  await scene.count();
  t.same(scene.values, {}, 'what is gone leaves');
});

t.test('refusals that an earlier process or mode counted do not count', async (t) => {
  const scene = new Scene();
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 100)];
  await scene.refusals.start();
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 103)];
  await scene.count();
  t.equal(scene.inForce.IPv4.asked, 1, 'what comes meanwhile waits for the plan');
  scene.put(WEB);
  await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 3 });
  scene.inForce.IPv4 = dataplane([refused('10.96.0.10', 80, 50)]);
  await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 3 });
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 51)];
  await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 4 });
  scene.refusals.stop();
});

t.test('a counter that starts again at zero adds to the sum, and rows of one kind are added up', async (t) => {
  const scene = await begun(t);
  for (const [packets, sum] of [
    [5, 5],
    [2, 7],
    [0, 7],
    [1, 8],
  ] as const) {
    scene.inForce.IPv4.answer = packets === 0 ? [] : [refused('10.96.0.10', 80, packets)];
    await scene.count();
    t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': sum });
  }
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 3), refused('10.96.0.10', 80, 8)];
  await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 18 });
});

t.test('a family whose refused packets cannot be read is reported once, and the other is counted', async (t) => {
  const scene = await begun(t);
  scene.inForce.IPv4.answer = new Error('no');
  scene.inForce.IPv6.answer = [refused('fd00:96::a', 80, 1)];
  for (let time = 0; time < 2; time++) await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 1 });
  t.equal(scene.log.lines.filter((line) => line.includes('cannot count refused packets')).length, 1);
  scene.inForce.IPv4.answer = [refused('10.96.0.10', 80, 2)];
  await scene.count();
  t.same(scene.values, { 'refused/default/web/http/TCP/no-endpoints': 3 });
});

t.test('Service ports beyond the limit are counted together', async (t) => {
  const scene = await begun(t, 1);
  scene.put(service('other', { clusterIPs: ['10.96.0.11'] }), service('third', { clusterIPs: ['10.96.0.12'] }));
  scene.inForce.IPv4.answer = ['10.96.0.10', '10.96.0.11', '10.96.0.12'].map((to) => refused(to, 80, 2));
  await scene.count();
  t.same(scene.values, {
    'refused/default/web/http/TCP/no-endpoints': 2,
    'refused/_other/_other/_other/_other/no-endpoints': 4,
  });
});
