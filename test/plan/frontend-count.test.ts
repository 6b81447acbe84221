import t from 'tap';
import { FAMILIES } from '../../src/base/ip.js';
import { nodeFacts } from '../../src/plan/facts.js';
import { frontendCount } from '../../src/plan/frontend-count.js';
import { planService } from '../../src/plan/service-plan.js';
import { planSettings } from '../support/plan-settings.js';
import { address, service, type ServiceText } from '../support/rows.js';

const SETTINGS = planSettings();
const NODE = nodeFacts(SETTINGS, undefined);

t.test('the frontend count equals the number of frontends in a plan', (t) => {
  const both = { clusterIPs: ['10.96.0.1', 'fd00::1'], ipFamilies: ['IPv4', 'IPv6'] } as const;
  const cases: readonly ServiceText[] = [
    { ...both, ports: [] },
    { ...both, ports: [{ port: 80 }] },
    { ...both, type: 'NodePort', ports: [{ port: 80, nodePort: 30_000 }, { port: 81 }] },
    { ...both, ports: [{ port: 80 }, { port: 81 }], externalIPs: ['192.0.2.1', '192.0.2.1', '2001:db8::1'] },
    {
      ...both,
      type: 'LoadBalancer',
      ports: [{ port: 80, nodePort: 30_000 }],
      externalIPs: ['192.0.2.1'],
      loadBalancer: ['192.0.2.1', '192.0.2.2'],
    },
  ];
  for (const text of cases) {
    const row = service('s', text);
    for (const family of FAMILIES) {
      const plan = planService(family, row, [], NODE, SETTINGS);
      t.equal(frontendCount(family, row), plan?.frontends.length, `${family} ${JSON.stringify(text)}`);
    }
  }
  t.end();
});

t.test('addresses that a load balancer answers itself are not counted as frontends', (t) => {
  const row = service('s', { loadBalancer: [{ address: address('192.0.2.1'), ipMode: 'Proxy' }] });
  t.equal(frontendCount('IPv4', row), 1);
  t.end();
});

t.test('a million frontends are counted without being made', (t) => {
  const externalIPs = Array.from({ length: 1000 }, (_, index) => `198.18.${index >> 8}.${index & 255}`);
  const ports = Array.from({ length: 1000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
  const count = frontendCount('IPv4', service('s', { ports, externalIPs }));
  t.equal(count, 1_001_000);
  t.end();
});
