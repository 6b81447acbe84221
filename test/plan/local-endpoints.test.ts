import t from 'tap';
import type { EndpointSliceRow, ServiceRow } from '../../src/state/rows.js';
import { nodeFacts } from '../../src/plan/facts.js';
import { ForwardingTable } from '../../src/plan/forwarding-table.js';
import type { PortsWithoutLocal } from '../../src/plan/local-endpoints.js';
import { planNode } from '../../src/plan/node-plan.js';
import { planService } from '../../src/plan/service-plan.js';
import type { ServicePlan } from '../../src/plan/types.js';
import { planSettings } from '../support/plan-settings.js';
import { SeededRandom } from '../support/random.js';
import { address, node, service, slice, type EndpointText, type ServiceText } from '../support/rows.js';

const SETTINGS = planSettings();
const ME = node(SETTINGS.nodeName, ['192.168.0.2']);
const HERE: EndpointText = { address: '10.0.0.1', node: SETTINGS.nodeName };
const ELSEWHERE: EndpointText = { address: '10.0.0.2', node: 'other' };

function plan(row: ServiceRow, slices: readonly EndpointSliceRow[]): ServicePlan | null {
  return planService('IPv4', row, slices, nodeFacts(SETTINGS, ME), SETTINGS);
}

function table(): ForwardingTable {
  return new ForwardingTable(planNode('IPv4', SETTINGS, ME, []));
}

function count(text: ServiceText, endpoints: readonly EndpointText[]): PortsWithoutLocal {
  const own = table();
  own.setService('default/web', plan(service('web', text), [slice('web', endpoints)]));
  return own.portsWithoutLocal;
}

const INTERNAL: ServiceText = { internalTrafficPolicy: 'Local' };
const EXTERNAL: ServiceText = {
  externalTrafficPolicy: 'Local',
  externalIPs: ['192.0.2.1'],
  loadBalancer: ['192.0.2.2'],
  ports: [{ nodePort: 30_000 }],
};

t.test('a port without local endpoints counts once for each policy Local', (t) => {
  t.same(count({}, [ELSEWHERE]), { internal: 0, external: 0 }, 'policies Cluster');
  t.same(count(INTERNAL, [ELSEWHERE]), { internal: 1, external: 0 });
  t.same(count(INTERNAL, [ELSEWHERE, HERE]), { internal: 0, external: 0 });
  t.same(count(INTERNAL, []), { internal: 0, external: 0 }, 'no endpoints at all is another matter');
  t.same(count(EXTERNAL, [ELSEWHERE]), { internal: 0, external: 1 }, 'three ways in, one port');
  t.same(count(EXTERNAL, [HERE]), { internal: 0, external: 0 });
  t.same(count(EXTERNAL, []), { internal: 0, external: 0 });
  t.same(count({ ...EXTERNAL, ...INTERNAL }, [ELSEWHERE]), { internal: 1, external: 1 });
  t.same(
    count(INTERNAL, [{ ...ELSEWHERE, state: '' }]),
    { internal: 0, external: 0 },
    'an endpoint that does not serve',
  );
  const ports = [
    { name: 'a', port: 80 },
    { name: 'b', port: 81 },
  ];
  const own = table();
  const two = [slice('web', [ELSEWHERE], { ports: [{ name: 'a' }, { name: 'b' }] })];
  own.setService('default/web', plan(service('web', { ...INTERNAL, ports }), two));
  t.same(own.portsWithoutLocal, { internal: 2, external: 0 });
  t.end();
});

t.test('the count of ports without local endpoints depends on the last plans only', (t) => {
  const random = new SeededRandom(11);
  const texts: readonly ServiceText[] = [{}, INTERNAL, EXTERNAL, { ...EXTERNAL, ...INTERNAL }];
  const endpointSets = [[], [HERE], [ELSEWHERE], [HERE, ELSEWHERE]];
  const own = table();
  const last = new Map<string, ServicePlan | null>();
  for (let step = 0; step < 300; step++) {
    const name = `s${step % 7}`;
    const clusterIPs = [address(`10.96.0.${(step % 7) + 1}`)];
    const next = random.chance(0.2)
      ? null
      : plan(service(name, { ...random.pick(texts), clusterIPs }), [slice(name, random.pick(endpointSets))]);
    own.setService(`default/${name}`, next);
    last.set(name, next);
    const fresh = table();
    for (const [key, value] of last) fresh.setService(`default/${key}`, value);
    if (JSON.stringify(fresh.portsWithoutLocal) !== JSON.stringify(own.portsWithoutLocal))
      t.same(own.portsWithoutLocal, fresh.portsWithoutLocal, `step ${step}`);
  }
  t.ok(own.portsWithoutLocal.internal + own.portsWithoutLocal.external > 0);
  for (const name of last.keys()) own.setService(`default/${name}`, null);
  t.same(own.portsWithoutLocal, { internal: 0, external: 0 });
  t.end();
});
