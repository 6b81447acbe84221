// Addresses from outside that are another Service's cluster IP, where no ServiceCIDR is known.
import t from 'tap';
import type { PlanSettings } from '../../src/plan/facts.js';
import { Planner } from '../../src/plan/planner.js';
import { printConflict } from '../../src/plan/text.js';
import { refOf, type ServiceRow } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings } from '../support/plan-settings.js';
import { service } from '../support/rows.js';

const C = '10.96.0.1';
const SETTINGS = { localDetection: { type: 'BridgeInterface', name: 'cbr0' } } as const;
const VICTIM = service('new', { clusterIPs: [C], creationTime: 2 });
const SECOND = service('second', { clusterIPs: [C], creationTime: 3 });
const fromOutside = (name: string, port: number, by: 'externalIPs' | 'loadBalancer'): ServiceRow =>
  service(name, { clusterIPs: [`10.96.1.${port}`], [by]: [C], ports: [{ port }], creationTime: 1 });
const RIVALS = [
  fromOutside('same', 80, 'externalIPs'),
  fromOutside('other', 81, 'externalIPs'),
  fromOutside('balancer', 82, 'loadBalancer'),
];
const [OWN, ...OTHERS] = [80, 81, 82].map((port) => `${C}:${port}/TCP`);

class Scene {
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  readonly planner = new Planner(planSettings(SETTINGS));
  readonly table = this.planner.tables.IPv4;

  put(...rows: readonly ServiceRow[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    this.plan();
  }

  remove(row: ServiceRow): void {
    this.writer.apply([{ type: 'remove', ref: refOf(row) }]);
    this.plan();
  }

  configure(settings: Partial<PlanSettings>): void {
    this.planner.setSettings(planSettings({ ...SETTINGS, ...settings }));
    this.plan();
  }

  /** Who holds the ports of the address. */
  held(): readonly string[] {
    return [...this.table.frontends()]
      .filter(({ address }) => address === C)
      .map(({ key, servicePort }) => `${key} ${servicePort}`)
      .sort();
  }

  private plan(): void {
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }
}

const ORDERS: readonly (readonly ServiceRow[])[] = [
  [VICTIM, ...RIVALS],
  [...RIVALS, VICTIM],
];

t.test("no port of another Service's cluster IP goes to an address from outside", (t) => {
  for (const order of ORDERS) {
    const scene = new Scene();
    for (const row of order) scene.put(row);
    t.same(scene.held(), [`${OWN} default/new`]);
    t.same([...scene.table.conflicts()].map(printConflict).sort(), [
      `conflict: IPv4 ${OWN} belongs to default/new, as its cluster IP, which comes before external IP; default/same does not get it`,
      `conflict: IPv4 ${OTHERS[0]} belongs to default/new, whose cluster IP this address is; default/other does not get it`,
      `conflict: IPv4 ${OTHERS[1]} belongs to default/new, whose cluster IP this address is; default/balancer does not get it`,
    ]);
    scene.table.takeChange();
    scene.configure({ externalIPsInClusterRanges: true });
    t.same(scene.held(), [`${OWN} default/new`, `${OTHERS[0]} default/other`, `${OTHERS[1]} default/balancer`]);
    t.same([...scene.table.takeChange().frontends].sort(), OTHERS);
    scene.configure({});
    t.same(scene.held(), [`${OWN} default/new`]);
  }
  t.end();
});

t.test('an address from outside is served once it is no cluster IP any more', (t) => {
  for (const order of ORDERS) {
    const scene = new Scene();
    for (const row of order) scene.put(row);
    scene.put(SECOND);
    scene.remove(VICTIM);
    t.same(scene.held(), [`${OWN} default/second`], 'another Service has it still');
    scene.table.takeChange();
    scene.put(service('second', { clusterIPs: ['10.96.0.2'], creationTime: 3 }));
    t.same(scene.held(), [`${OWN} default/same`, `${OTHERS[0]} default/other`, `${OTHERS[1]} default/balancer`]);
    t.match([...scene.table.takeChange().clusterAddresses].sort(), [C, '10.96.0.2']);
    t.same([...scene.table.conflicts()], []);
    scene.remove(RIVALS[0]!);
    scene.put(SECOND);
    t.same(scene.held(), [`${OWN} default/second`]);
  }
  t.end();
});

t.test('a Service has its own cluster IP, whatever else it asks for', (t) => {
  const scene = new Scene();
  scene.put(service('own', { clusterIPs: [C], externalIPs: [C], loadBalancer: [C] }));
  t.same(scene.held(), [`${OWN} default/own`]);
  t.end();
});
