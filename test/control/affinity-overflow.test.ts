import t, { type Test } from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import type { Family } from '../../src/base/ip.js';
import { AffinityOverflow, printFullAffinity } from '../../src/control/affinity-overflow.js';
import type { FamilyDataplane, UnrememberedClients } from '../../src/dataplane/contract.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { address, service } from '../support/rows.js';

const LOOK_MS = 30_000;
const WEB = service('web', {
  clusterIPs: ['10.96.0.10', 'fd00:96::a'],
  ports: [{ name: 'http', port: 80, nodePort: 30080 }],
  affinitySeconds: 60,
});

type Mode = Pick<FamilyDataplane, 'unremembered'>;

const NOT_COUNTING: Mode = { unremembered: () => Promise.resolve(null) };

class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly events: ProxyEvent[] = [];
  /** Of each family, as the metrics have it; absent: it is not counted. */
  readonly counted: Partial<Record<Family, number>> = {};
  readonly overflow: AffinityOverflow;
  /** What the kernel answers. */
  rows: readonly UnrememberedClients[] = [];
  mode: Mode = this.counting();
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings({ nodeName: 'me' }));

  constructor() {
    const { planner, log, clock, events, counted } = this;
    const current = (): Mode => this.mode;
    const ofFamily = (family: Family) => ({
      table: planner.tables[family],
      get dataplane() {
        return family === 'IPv4' ? current() : NOT_COUNTING;
      },
    });
    this.overflow = new AffinityOverflow({
      families: [ofFamily('IPv4'), ofFamily('IPv6')],
      metrics: { unremembered: (family, count) => void (counted[family] = (counted[family] ?? 0) + count) },
      events: { record: (event) => events.push(event) },
      log,
      clock,
    });
    this.writer.apply([{ type: 'upsert', row: WEB }]);
    planner.update(this.store.snapshot, this.store.takeChanges());
  }

  /** A mode that counts. */
  counting(): Mode {
    return { unremembered: () => Promise.resolve(this.rows) };
  }

  async begin(t: Test): Promise<void> {
    t.teardown(() => {
      this.overflow.stop();
    });
    await this.overflow.start();
  }

  async look(...rows: readonly UnrememberedClients[]): Promise<void> {
    this.rows = rows;
    await this.clock.advance(LOOK_MS);
  }

  get status(): readonly string[] {
    return this.overflow.of('IPv4').map(printFullAffinity);
  }
}

function unremembered(to: string, connections: number, port = 80): UnrememberedClients {
  return { asked: frontendKey(address(to), port, 'TCP'), connections };
}

t.test('clients that affinity has no room for are counted by family from the start of the process', async (t) => {
  const scene = new Scene();
  scene.rows = [unremembered('10.96.0.10', 5)];
  await scene.begin(t);
  t.same(scene.counted, { IPv4: 0 }, 'a mode that cannot tell has no metric');
  await scene.look(unremembered('10.96.0.10', 7), unremembered('192.168.0.2', 4, 30080));
  t.same(scene.counted, { IPv4: 6 });
  await scene.look(unremembered('10.96.0.10', 3), unremembered('192.168.0.2', 4, 30080));
  t.same(scene.counted, { IPv4: 9 }, 'a counter that began anew');
  scene.mode = scene.counting();
  await scene.look(unremembered('10.96.0.10', 100));
  t.same(scene.counted, { IPv4: 9 }, 'what another mode counted before it was in force');
});

t.test('a Service port without room for clients is in the status, and reported once until it has room', async (t) => {
  const scene = new Scene();
  await scene.begin(t);
  await scene.look();
  t.same([scene.status, scene.log.lines, scene.events], [[], [], []]);
  const gone = unremembered('10.96.0.99', 9);
  await scene.look(unremembered('10.96.0.10', 7), unremembered('192.168.0.2', 4, 30080), gone);
  const reported = 'no room for session affinity: default/web:http, 11 connections of clients that are not remembered';
  t.same(scene.status, [reported]);
  await scene.look(unremembered('10.96.0.10', 8));
  t.match(scene.log.lines, [/^warn session affinity has no room for more clients/]);
  t.match(scene.events, [
    {
      reason: 'AffinityFull',
      regarding: { kind: 'Service', namespace: 'default', name: 'web' },
      finding: 'IPv4 affinity default/web:http',
    },
  ]);
  await scene.look();
  t.same(scene.status, []);
  t.match(scene.log.lines[1], /^info 1 session affinity has room again/);
  await scene.look(unremembered('10.96.0.10', 1));
  t.equal(scene.events.length, 2, 'it is another time');
});
