import t from 'tap';
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from '../../src/base/service-limits.js';
import { FrontendLimit } from '../../src/plan/frontend-limit.js';
import { PlannedCluster } from '../../src/plan/planned-cluster.js';
import { claimProblems, claimProblemSteps } from '../../src/plan/claim-problems.js';
import { planService } from '../../src/plan/service-plan.js';
import type { ServicePlan } from '../../src/plan/types.js';
import { Store } from '../../src/state/store.js';
import { rounds } from '../support/extent.js';
import { planSettings } from '../support/plan-settings.js';
import { SeededRandom } from '../support/random.js';
import { address, port, service, slice, type ServiceText } from '../support/rows.js';

const NODE = { name: 'me', zone: null, addresses: { IPv4: null, IPv6: null }, ranges: null };

function plan(text: ServiceText, limits: ServiceLimits, endpoints = 0): ServicePlan {
  const slices = Array.from({ length: endpoints }, (_, index) =>
    slice('a', [{ address: `10.1.${index >> 8}.${index & 255}` }], { name: `a-${index}`, ports: text.ports ?? [{}] }),
  );
  const planned = planService('IPv4', service('a', text), slices, NODE, planSettings({ limits }));
  if (planned === null) throw new Error('nothing is planned');
  return planned;
}

function keys({ frontends }: ServicePlan): readonly string[] {
  return frontends.map(({ key }) => key).sort();
}

function ports(count: number, nodePort = 0): readonly ReturnType<typeof port>[] {
  return Array.from({ length: count }, (_, index) =>
    port({ name: `p${index}`, port: index + 1, nodePort: nodePort === 0 ? 0 : nodePort + index }),
  );
}

function externals(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `203.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
}

t.test('the frontend limit keeps cluster IPs, node ports, load balancer addresses, external IPs in this order', (t) => {
  const text = {
    ports: ports(2, 30_000),
    loadBalancer: ['192.0.2.1'],
    externalIPs: ['198.51.100.1', '198.51.100.2'],
  };
  const kept = (frontends: number): readonly string[] => keys(plan(text, { frontends, entries: 1 }));
  t.same(kept(1), ['10.96.0.10:1/TCP']);
  t.same(kept(3), ['10.96.0.10:1/TCP', '10.96.0.10:2/TCP', 'nodeport:30000/TCP']);
  t.same(
    kept(7),
    [
      ...['10.96.0.10:1/TCP', '10.96.0.10:2/TCP', '192.0.2.1:1/TCP', '192.0.2.1:2/TCP', '198.51.100.1:1/TCP'],
      ...['nodeport:30000/TCP', 'nodeport:30001/TCP'],
    ].sort(),
  );
  const all = plan(text, { frontends: 10, entries: 1 });
  t.equal(all.frontends.length, 10);
  t.same(all.limitations, []);
  t.same(plan(text, { frontends: 9, entries: 1 }).limitations, [
    {
      family: 'IPv4',
      cause: 'limit',
      servicePort: 'default/a',
      text: '1 of 10 frontends (ports × addresses) are left out: over the limits of one Service',
    },
  ]);
  t.end();
});

t.test('the frontend limit counts endpoints and source ranges for every frontend', (t) => {
  const text = { ports: ports(3), loadBalancer: ['192.0.2.1'], sourceRanges: ['10.0.0.0/8', '172.16.0.0/12'] };
  // A cluster IP has 4 entries, a balancer address with its two ranges and itself 7.
  t.equal(plan(text, { frontends: 100, entries: 12 + 21 }, 4).frontends.length, 6);
  t.equal(plan(text, { frontends: 100, entries: 12 + 20 }, 4).frontends.length, 5);
  t.equal(plan(text, { frontends: 100, entries: 11 }, 4).frontends.length, 2);
  t.equal(plan(text, { frontends: 100, entries: 1 }, 4).frontends.length, 1, 'the first is always kept');
  t.end();
});

t.test('the frontend limit counts session affinity for every frontend', (t) => {
  const text = { ports: ports(3), affinitySeconds: 60 };
  t.equal(plan(text, { frontends: 100, entries: 303 }, 1).frontends.length, 3);
  t.equal(plan(text, { frontends: 100, entries: 302 }, 1).frontends.length, 2);
  t.equal(plan(text, { frontends: 100, entries: 1 }, 1).frontends.length, 1, 'the first is always kept');
  t.equal(plan({ ports: ports(2000), affinitySeconds: 60 }, DEFAULT_SERVICE_LIMITS, 1).frontends.length, 990);
  t.end();
});

t.test('the kept frontends do not depend on the order of slices or listening sockets', (t) => {
  const text = { ports: ports(3), externalIPs: externals(5) };
  const limits = { frontends: 100, entries: 40 };
  const here = planSettings({ limits });
  const slices = [3, 1, 2].map((index) =>
    slice('a', [{ address: `10.1.0.${index}`, node: 'x' }], { name: `a-${index}` }),
  );
  const planned = [
    planService('IPv4', service('a', text), slices, NODE, here),
    planService('IPv4', service('a', text), [...slices].reverse(), { ...NODE, name: 'x', zone: 'z' }, here),
  ].map((each) => (each === null ? null : keys(each)));
  t.same(planned[0], planned[1]);
  t.equal(planned[0]?.length, 13);
  t.end();
});

t.test('the computed frontend count agrees with a list of all frontends', (t) => {
  const random = new SeededRandom(7);
  const below = (most: number): number => random.below(most);
  for (let round = 0; round < rounds(500); round++) {
    const asked = {
      ports: Array.from({ length: 1 + below(6) }, () => ({ nodePort: below(2) })),
      loadBalancerAddresses: externals(below(4)).map(address),
      externalIPs: externals(below(6)).map(address),
      sourceRanges: below(4),
      endpoints: below(5),
    };
    const limits = { frontends: 1 + below(40), entries: 1 + below(80) };
    const limit = new FrontendLimit(asked, limits);
    t.same(
      asked.ports.map((_, index) => limit.ofPort(index)),
      listed(asked, limits),
      JSON.stringify({ asked, limits }),
    );
  }
  t.end();
});

/** By making every frontend, in order, until one does not fit. */
function listed(asked: ConstructorParameters<typeof FrontendLimit>[0], limits: ServiceLimits): readonly unknown[] {
  const { ports, endpoints, sourceRanges } = asked;
  const kept = ports.map(() => ({ clusterIP: false, nodePort: false, loadBalancerAddresses: 0, externalIPs: 0 }));
  const all: { readonly weight: number; readonly keep: () => void }[] = [];
  const add = (weight: number, keep: (of: NonNullable<(typeof kept)[number]>, port: number) => void): void => {
    for (const [index, of] of kept.entries()) {
      if (keep === nodePort && ports[index]?.nodePort === 0) continue;
      all.push({
        weight,
        keep: () => {
          keep(of, index);
        },
      });
    }
  };
  const nodePort = (of: (typeof kept)[number]): void => {
    of.nodePort = true;
  };
  add(endpoints, (of) => {
    of.clusterIP = true;
  });
  add(endpoints, nodePort);
  asked.loadBalancerAddresses.forEach(() => {
    add(endpoints + sourceRanges, (of) => {
      of.loadBalancerAddresses++;
    });
  });
  asked.externalIPs.forEach(() => {
    add(endpoints, (of) => {
      of.externalIPs++;
    });
  });
  let entries = Math.max(limits.entries, endpoints + sourceRanges);
  let frontends = limits.frontends;
  for (const { weight, keep } of all) {
    if (frontends < 1 || entries < weight) break;
    frontends--;
    entries -= weight;
    keep();
  }
  return kept;
}

t.test('planning costs as much as is kept, however much is claimed', (t) => {
  const text = { ports: ports(6000), externalIPs: externals(20_000) };
  const planned = plan(text, { frontends: 100, entries: 1000 });
  t.equal(planned.frontends.length, 100);
  t.match(planned.limitations, [
    { text: '120005900 of 120006000 frontends (ports × addresses) are left out: over the limits of one Service' },
  ]);
  t.end();
});

t.test('frontends beyond the limit are a problem of the Service, also where it is only checked', (t) => {
  const cluster = new PlannedCluster([], { frontends: 10, entries: 10 });
  t.match(claimProblems(service('a', { ports: ports(11) }), cluster), [
    { rule: 'frontends', path: 'spec.ports', value: '11', problem: /make 11 frontends/, standing: 'denied' },
  ]);
  t.same(claimProblems(service('a', { ports: ports(10) }), cluster), []);
  const ranged = service('a', { loadBalancer: ['192.0.2.1'], sourceRanges: ['10.0.0.0/8'], ports: ports(5) });
  t.match(claimProblems(ranged, new PlannedCluster([], { frontends: 10, entries: 9 })), [
    { rule: 'frontends', problem: /^1 of 10 frontends/ },
  ]);
  t.end();
});

t.test('a large Service is judged in parts, with the problems that it has as a whole', (t) => {
  const external = externals(100);
  const text: ServiceText = {
    ports: ports(30, 30_000),
    loadBalancer: [...external.slice(0, 40), '10.96.0.10'],
    externalIPs: [...external, ...external, '10.96.0.10', '2001:db8::1'],
  };
  const wide: ServiceText = { ports: ports(1), externalIPs: externals(3000) };
  const tall: ServiceText = { ports: ports(3000) };
  for (const asked of [text, wide, tall]) {
    const store = new Store();
    const writer = store.register('test');
    // Older, it holds all of it.
    writer.apply([{ type: 'upsert', row: service('holder', { ...asked, creationTime: 1 }) }]);
    writer.complete();
    const cluster = new PlannedCluster();
    cluster.update(store.snapshot, store.takeChanges());
    const row = service('a', { ...asked, creationTime: 2 });
    const whole = planService('IPv4', row, [], NODE, planSettings({}))!;
    const expected = [...cluster.tables.IPv4.conflictsOf(whole)].map(({ conflict }) => conflict.frontend);
    const steps = [...claimProblemSteps(row, cluster)];
    const found = steps.flat().filter(({ rule }) => rule === 'conflict');
    t.ok(expected.length > 3000 - 1, `${expected.length} conflicts`);
    t.same(found.map(({ value }) => value).sort(), expected.sort());
    t.ok(
      steps.every((problems) => problems.length <= 1100),
      'no step has many of them',
    );
  }
  t.end();
});
