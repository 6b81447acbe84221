import t from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { UNHELD } from '../../src/plan/frontend-fields.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { planNode } from '../../src/plan/node-plan.js';
import { printConflict, printConflictPair, printFrontend, printTable } from '../../src/plan/text.js';
import type { FrontendPlan, NodePlan, ServicePlan } from '../../src/plan/types.js';
import { rounds } from '../support/extent.js';
import { planSettings } from '../support/plan-settings.js';
import { SeededRandom } from '../support/random.js';
import { address, node, prefix, serviceCIDR } from '../support/rows.js';

const NODE_ADDRESS = '192.168.0.2';
const NODE: NodePlan = planNode('IPv4', planSettings(), node('me', [NODE_ADDRESS]), []);

function list(hosts: readonly number[]): EndpointList {
  return EndpointList.of(
    'IPv4',
    hosts.map((host) => ({ address: address(`10.0.0.${host}`), port: 80 })),
  );
}

function frontend(servicePort: string, host: string | null, fields: Partial<FrontendPlan> = {}): FrontendPlan {
  const own = host === null ? null : address(host);
  return {
    key: frontendKey(own, 80, 'TCP'),
    kind: own === null ? 'NodePort' : 'ClusterIP',
    family: 'IPv4',
    address: own,
    protocol: 'TCP',
    port: 80,
    servicePort,
    endpoints: list([1]),
    localEndpoints: null,
    masquerade: 'off-cluster',
    whenEmpty: 'reject',
    affinitySeconds: null,
    sourceRanges: null,
    retrySeconds: null,
    balance: null,
    ...UNHELD,
    ...fields,
  };
}

function plan(service: string, frontends: readonly FrontendPlan[], fields: Partial<ServicePlan> = {}): ServicePlan {
  const nothing = { hairpinAddresses: [], ownEndpoints: [], healthCheck: null, limitations: [] };
  return { service, family: 'IPv4', creationTime: 0, frontends, ...nothing, ...fields };
}

/** A plan of one frontend on one address that several Services want. */
function claim(service: string, creationTime: number | null): ServicePlan {
  return plan(service, [frontend(service, '10.96.0.1')], { creationTime });
}

/** All there is to see of a table, in no order of its own. */
function picture(table: ForwardingTable): readonly string[] {
  const conflicts = [...table.conflicts()].map(
    ({ frontend, winner, loser }) => `${frontend}: ${winner} before ${loser}`,
  );
  const checks = [...table.healthChecks()].map((check) => JSON.stringify(check));
  const flows = [...table.frontends()].map(
    (found) => `${found.key} flows ${found.flowEndpoints?.toStrings().join() ?? '-'}`,
  );
  return [...printTable(table), ...conflicts, ...checks, ...flows, ...table.services()].sort();
}

function holder(table: ForwardingTable): string | undefined {
  return table.frontend('10.96.0.1:80/TCP')?.servicePort;
}

t.test('claims of frontends rank by kind, then age, then key, in any order of arrival', (t) => {
  const random = new SeededRandom(7);
  const ranks: readonly FrontendPlan['kind'][] = ['ClusterIP', 'LoadBalancer', 'ExternalIP'];
  for (let round = 0; round < rounds(200); round++) {
    const claims = ['a', 'b', 'c', 'd', 'e', 'f'].map((service) => {
      const kind = random.pick(ranks);
      const creationTime = random.pick([1, 2, null]);
      return plan(service, [frontend(service, '10.96.0.1', { kind })], { creationTime });
    });
    const rank = ({ frontends, creationTime, service }: ServicePlan): string =>
      `${ranks.indexOf(frontends[0]!.kind)} ${creationTime ?? 9} ${service}`;
    const expected = [...claims].sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
    const pictures = [0, 1].map(() => {
      const table = new ForwardingTable(NODE);
      // On the way there each may have said something else, or have been away.
      for (const { service } of random.shuffled(claims)) {
        const kind = random.pick(ranks);
        table.setService(service, plan(service, [frontend(service, '10.96.0.1', { kind })], { creationTime: 0 }));
        if (random.chance(0.3)) table.setService(service, null);
      }
      for (const one of random.shuffled(claims)) table.setService(one.service, one);
      t.equal(holder(table), expected[0]?.service);
      const conflicts = [...table.conflicts()];
      for (const [index, loser] of expected.slice(1).entries()) {
        const [{ kind: winnerKind } = frontend('', null)] = expected[0]!.frontends;
        const [{ kind: loserKind } = frontend('', null)] = loser.frontends;
        const older = expected[0]!.creationTime !== loser.creationTime;
        const reason = winnerKind === loserKind ? (older ? 'age' : 'key') : 'kind';
        t.match(conflicts[index], { winner: holder(table), loser: loser.service, winnerKind, loserKind, reason });
      }
      return picture(table);
    });
    t.same(pictures[0], pictures[1]);
  }
  t.end();
});

t.test('an external IP does not take a cluster IP or load balancer address of a younger Service', (t) => {
  const [C, L] = ['10.96.0.1', '10.96.0.2'];
  const attacker = [C, L].map((host) => frontend('old', host, { kind: 'ExternalIP' }));
  const victim = [frontend('new', C), frontend('new', L, { kind: 'LoadBalancer' })];
  const table = new ForwardingTable(NODE);
  table.setService('old', plan('old', attacker, { creationTime: 1 }));
  table.takeChange();
  table.setService('new', plan('new', victim, { creationTime: 2 }));
  t.same([...table.takeChange().frontends], ['10.96.0.1:80/TCP', '10.96.0.2:80/TCP']);
  t.same(
    [...table.frontends()].map(({ servicePort }) => servicePort),
    ['new', 'new'],
  );
  t.same([...table.conflicts()].map(printConflict), [
    'conflict: IPv4 10.96.0.1:80/TCP belongs to new, as its cluster IP, which comes before external IP; old does not get it',
    'conflict: IPv4 10.96.0.2:80/TCP belongs to new, as its load balancer address, which comes before external IP; old does not get it',
  ]);
  t.end();
});

t.test('of several claims of a frontend the oldest wins, in any order of arrival', (t) => {
  const claims = [claim('b', 20), claim('a', 30), claim('c', 10), claim('e', null), claim('d', null), claim('f', 10)];
  const expected = ['c', 'f', 'b', 'a', 'd', 'e'];
  const random = new SeededRandom(1);
  for (let round = 0; round < 50; round++) {
    const table = new ForwardingTable(NODE);
    for (const one of random.shuffled(claims)) table.setService(one.service, one);
    t.equal(holder(table), 'c');
    t.same(
      [...table.conflicts()].map(({ frontend, family, winner, loser }) => [frontend, family, winner, loser]),
      expected.slice(1).map((loser) => ['10.96.0.1:80/TCP', 'IPv4', 'c', loser]),
    );
    for (const [index, service] of expected.entries()) {
      t.equal(holder(table), service);
      table.setService(service, null);
      t.equal(holder(table), expected[index + 1], `after ${service} is gone`);
    }
    t.same([...table.frontends()], []);
  }
  t.end();
});

t.test('a claim of a frontend can be withdrawn, renewed and become younger', (t) => {
  const table = new ForwardingTable(NODE);
  table.setService('a', claim('a', 1));
  table.setService('b', claim('b', 2));
  table.setService('b', plan('b', []));
  t.same([...table.conflicts()], [], 'the loser no longer asks');
  table.setService('b', claim('b', 2));
  table.setService('a', claim('a', 3));
  t.equal(holder(table), 'b', 'the first was created anew');
  table.setService('b', plan('b', [frontend('b', '10.96.0.1', { endpoints: list([1, 2]) })], { creationTime: 2 }));
  t.same(table.frontend('10.96.0.1:80/TCP')?.endpoints.toStrings(), ['10.0.0.1:80', '10.0.0.2:80']);
  table.takeChange();
  table.setService('a', plan('a', [frontend('a', '10.96.0.1', { endpoints: list([9]) })], { creationTime: 3 }));
  t.equal(table.takeChange().frontends.size, 0, 'a change of the loser is no change');
  table.setService('b', null);
  t.same(table.frontend('10.96.0.1:80/TCP')?.endpoints.toStrings(), ['10.0.0.9:80'], 'until it holds');
  t.end();
});

t.test('a changed frontend counts as a change, and an equal one does not', (t) => {
  const table = new ForwardingTable(NODE);
  const base = frontend('svc', '10.96.0.1', { flowEndpoints: list([1]), sourceRanges: [prefix('10.0.0.0/8')] });
  table.setService('svc', plan('svc', [base]));
  t.same(table.takeChange().frontends, new Set([base.key]));
  table.setService('svc', plan('svc', [{ ...base, endpoints: list([1]), sourceRanges: [prefix('10.0.0.0/8')] }]));
  t.equal(table.takeChange().frontends.size, 0, 'an equal one');
  table.setService('svc', plan('svc', [{ ...base, affinitySeconds: 30 }]));
  t.same(table.takeChange().frontends, new Set([base.key]));
  table.setService('svc', plan('svc', [base]));
  t.same(table.takeChange().frontends, new Set([base.key]), 'and back');
  t.end();
});

t.test('an address stays while one Service has it', (t) => {
  const table = new ForwardingTable(NODE);
  table.takeChange();
  const wants = (service: string, host: string): ServicePlan =>
    plan(service, [frontend(service, host), frontend(service, null)], { hairpinAddresses: [address('10.0.0.1')] });
  table.setService('a', wants('a', '10.96.0.1'));
  table.setService('b', wants('b', '10.96.0.1'));
  let change = table.takeChange();
  t.same([...table.clusterAddresses], ['10.96.0.1'], 'the address of a lost frontend too, and no node port');
  t.same([...change.clusterAddresses], ['10.96.0.1']);
  t.same([...change.hairpinAddresses], ['10.0.0.1']);
  table.setService('a', wants('a', '10.96.0.2'));
  change = table.takeChange();
  t.same([...change.clusterAddresses], ['10.96.0.2']);
  t.same([...change.hairpinAddresses], []);
  table.setService('b', null);
  t.same([...table.takeChange().clusterAddresses], ['10.96.0.1']);
  t.same([...table.hairpinAddresses], ['10.0.0.1']);
  table.setService('a', plan('a', [frontend('a', '10.96.0.2', { kind: 'LoadBalancer' })]));
  t.notOk(table.clusterAddresses.has(address('10.96.0.2')), 'other kinds have no cluster address');
  t.notOk(table.hairpinAddresses.has(address('10.0.0.1')));
  t.end();
});

t.test('health checks are those of Services with a health check node port', (t) => {
  const table = new ForwardingTable(NODE);
  const checked = (service: string, localEndpoints: number): ServicePlan =>
    plan(service, [], { healthCheck: { service, port: 31000, localEndpoints } });
  table.setService('a', checked('a', 1));
  table.setService('b', checked('b', 2));
  table.setService('c', plan('c', []));
  table.setService('a', checked('a', 0));
  const counts = (): readonly string[] =>
    [...table.healthChecks()].map(({ service, localEndpoints }) => `${service} ${localEndpoints}`).sort();
  t.same(counts(), ['a 0', 'b 2']);
  table.setService('a', plan('a', []));
  table.setService('b', null);
  t.same(counts(), []);
  t.end();
});

t.test('a changed node plan is a change, an equal one is not', (t) => {
  const table = new ForwardingTable(NODE);
  t.equal(table.takeChange().node, true, 'a fresh table has a change');
  t.equal(table.takeChange().node, false);
  table.setNode({ ...NODE });
  t.equal(table.takeChange().node, false, 'an equal plan');
  const next = planNode('IPv4', planSettings(), node('me', ['192.168.0.2']), [serviceCIDR('x', ['10.96.0.0/12'])]);
  table.setNode(next);
  t.equal(table.takeChange().node, true);
  t.equal(table.node, next);
  t.match(printTable(table), ['IPv4 node local-detector source 10.0.0.0/8']);
  t.end();
});

const SERVICES = ['ns/a', 'ns/b', 'ns/c', 'ns/d', 'ns/e', 'default/kubernetes'];

/** Plans over few addresses, so that most are contested. One is an endpoint, maybe of the API server, one is the node's. */
function randomPlan(random: SeededRandom, service: string): ServicePlan {
  const hosts = random.some(['10.96.0.1', '10.96.0.2', '10.96.0.3', '10.0.0.1', NODE_ADDRESS, null], 0.5);
  const frontends = hosts.map((host) =>
    frontend(service, host, {
      kind: host === null ? 'NodePort' : random.pick(['ClusterIP', 'LoadBalancer', 'ExternalIP']),
      endpoints: list(random.some([1, 2, 3], 0.5)),
      flowEndpoints: random.pick([null, list([1]), list([2])]),
      affinitySeconds: random.pick([null, null, 30]),
    }),
  );
  return plan(service, frontends, {
    creationTime: random.pick([null, 1, 1, 2, 3]),
    hairpinAddresses: random.some([address('10.0.0.1'), address('10.0.0.2')], 0.5),
    healthCheck: random.pick([null, { service, port: 31000, localEndpoints: random.below(3) }]),
  });
}

interface Step {
  readonly service: string;
  readonly plan: ServicePlan | null;
}

function randomHistory(random: SeededRandom): readonly Step[] {
  return Array.from({ length: 1 + random.below(25) }, () => {
    const service = random.pick(SERVICES);
    return { service, plan: random.chance(0.3) ? null : randomPlan(random, service) };
  });
}

/** Other histories with the same end. */
function variants(random: SeededRandom, history: readonly Step[]): readonly (readonly Step[])[] {
  const last = new Map(history.map((step) => [step.service, step]));
  const perService = SERVICES.map((service) => history.filter((step) => step.service === service));
  const interleaved: Step[] = [];
  const queues = perService.map((steps) => [...steps]);
  while (queues.some((queue) => queue.length > 0)) {
    const step = random.pick(queues.filter((queue) => queue.length > 0)).shift();
    if (step !== undefined) interleaved.push(step);
  }
  const twice = [...last.values()].flatMap((step) => [step, { ...step, plan: null }]);
  return [
    history,
    interleaved,
    random.shuffled([...last.values()]),
    [...random.shuffled(history), ...random.shuffled([...last.values()])],
    [...random.shuffled(twice), ...random.shuffled([...last.values()])],
    [...history, ...history],
  ];
}

t.test('the forwarding table depends on its Services only, not on its history', (t) => {
  const random = new SeededRandom(2);
  for (let round = 0; round < rounds(300); round++) {
    const history = randomHistory(random);
    const final = new Map(history.map((step) => [step.service, step.plan]));
    const fresh = new ForwardingTable(NODE);
    for (const service of [...final.keys()].sort()) fresh.setService(service, final.get(service) ?? null);
    const expected = picture(fresh);
    for (const [index, steps] of variants(random, history).entries()) {
      const table = new ForwardingTable(NODE);
      for (const { service, plan } of steps) table.setService(service, plan);
      if (JSON.stringify(picture(table)) !== JSON.stringify(expected)) {
        t.same(picture(table), expected, `round ${round}, variant ${index}`);
        t.end();
        return;
      }
    }
  }
  t.pass(`${rounds(300)} histories in 6 orders`);
  t.end();
});

const seen = (found: FrontendPlan | undefined): string | null =>
  found === undefined
    ? null
    : [
        ...printFrontend(found),
        found.masquerade,
        found.affinitySeconds,
        found.flowEndpoints?.toStrings().join() ?? '-',
      ].join('\n');

/** A copy kept by nothing but the changes. */
class Copy {
  private readonly frontends = new Map<string, string>();
  private readonly cluster = new Set<string>();
  private readonly hairpin = new Set<string>();

  /** Problems: what the copy lacks after the change, and what the change says in vain. */
  follow(table: ForwardingTable, exact: boolean): readonly string[] {
    const { frontends, clusterAddresses, hairpinAddresses } = table.takeChange();
    const vain: string[] = [];
    for (const key of frontends) {
      const now = seen(table.frontend(key));
      if (exact && now === (this.frontends.get(key) ?? null)) vain.push(`${key} did not change`);
      if (now === null) this.frontends.delete(key);
      else this.frontends.set(key, now);
    }
    const sets = [
      { copy: this.cluster, real: table.clusterAddresses, changed: clusterAddresses },
      { copy: this.hairpin, real: table.hairpinAddresses, changed: hairpinAddresses },
    ];
    for (const { copy, real, changed } of sets) {
      for (const one of changed) {
        if (exact && copy.has(one) === real.has(one)) vain.push(`${one} did not change`);
        if (real.has(one)) copy.add(one);
        else copy.delete(one);
      }
      if ([...copy].sort().join() !== [...real].sort().join()) vain.push(`addresses ${[...copy].join()}`);
    }
    const real = new Map([...table.frontends()].map((found) => [found.key, seen(found)]));
    for (const key of new Set([...real.keys(), ...this.frontends.keys()])) {
      if (real.get(key) !== this.frontends.get(key)) vain.push(`${key} was not said to have changed`);
    }
    return vain;
  }
}

t.test('reported changes turn a copy into the table, and none is superfluous', (t) => {
  const random = new SeededRandom(3);
  for (let round = 0; round < rounds(400); round++) {
    const table = new ForwardingTable(NODE);
    const copy = new Copy();
    const stepwise = random.chance(0.5);
    for (const { service, plan } of randomHistory(random)) {
      table.setService(service, plan);
      // Several steps may undo each other; one step alone must be told exactly.
      if (!stepwise && random.chance(0.6)) continue;
      const problems = copy.follow(table, stepwise);
      if (problems.length > 0) {
        t.same(problems, [], `round ${round}`);
        t.end();
        return;
      }
    }
    const rest = copy.follow(table, false);
    if (rest.length > 0) t.same(rest, [], `end of round ${round}`);
  }
  t.pass(`${rounds(400)} histories followed`);
  t.end();
});

/** Port 30080 of an address as an external IP, or as a node port where there is none. */
function port30080(service: string, host: string | null): FrontendPlan {
  const key = frontendKey(host === null ? null : address(host), 30_080, 'TCP');
  return frontend(service, host, { key, kind: host === null ? 'NodePort' : 'ExternalIP', port: 30_080 });
}

t.test('a node port wins over an external IP of another Service on an address of the node', (t) => {
  const owner = plan('owner', [port30080('owner', null)], { creationTime: 9 });
  const thief = plan('thief', [port30080('thief', NODE_ADDRESS), port30080('thief', '203.0.113.1')]);
  for (const order of [
    [owner, thief],
    [thief, owner],
  ]) {
    const table = new ForwardingTable(NODE);
    for (const one of order) table.setService(one.service, one);
    const held = (): readonly string[] => [...table.frontends()].map(({ key }) => key).sort();
    t.same(held(), ['203.0.113.1:30080/TCP', 'nodeport:30080/TCP'], 'others of its addresses are not concerned');
    t.same([...table.conflicts()].map(printConflict), [
      'conflict: IPv4 192.168.0.2:30080/TCP belongs to owner, as its node port, which comes before external IP; thief does not get it',
    ]);
    t.match(table.conflictPairs(), [{ count: 1, first: { winner: 'owner', loser: 'thief' } }]);
    table.takeChange();
    table.setService('owner', null);
    t.same(held(), ['192.168.0.2:30080/TCP', '203.0.113.1:30080/TCP'], 'until no Service has it');
    t.same([...table.takeChange().frontends].sort(), ['192.168.0.2:30080/TCP', 'nodeport:30080/TCP']);
    t.equal(table.conflictCount, 0);
    table.setService('owner', owner);
    t.equal(held().length, 2);
    table.setNode({ ...NODE, nodePortAddresses: [] });
    t.equal(held().length, 3, 'and where node ports do not answer');
    table.setNode(NODE);
    t.equal(held().length, 2);
  }
  t.end();
});

t.test('a Service may have its own node port as external IP, and a load balancer address any', (t) => {
  const table = new ForwardingTable(NODE);
  table.setService(
    'owner',
    plan('owner', [port30080('owner', null), port30080('owner', NODE_ADDRESS)], { creationTime: 9 }),
  );
  table.setService('older', plan('older', [port30080('older', NODE_ADDRESS)]));
  t.equal(table.frontend(`${NODE_ADDRESS}:30080/TCP`)?.servicePort, 'owner', 'although another one is older');
  t.match([...table.conflicts()], [{ winner: 'owner', winnerKind: 'ExternalIP', loser: 'older' }]);
  table.setService('owner', plan('owner', [port30080('owner', NODE_ADDRESS)], { creationTime: 9 }));
  t.equal(table.frontend(`${NODE_ADDRESS}:30080/TCP`)?.servicePort, 'older', 'without the node port age decides');
  const loadBalancer = { ...port30080('balancer', NODE_ADDRESS), kind: 'LoadBalancer' as const };
  table.setService('balancer', plan('balancer', [loadBalancer]));
  t.equal(table.frontend(`${NODE_ADDRESS}:30080/TCP`)?.servicePort, 'balancer');
  t.end();
});

/** Two ports of the API server's address, and one of another host's, as external IPs of a Service. */
const USURPER = plan(
  'default/usurper',
  (['10.0.0.1', '10.0.0.9'] as const).flatMap((host) =>
    [80, 81].map((port) =>
      frontend('default/usurper', host, {
        key: frontendKey(address(host), port, 'TCP'),
        kind: 'ExternalIP',
        port,
        endpoints: list([7]),
      }),
    ),
  ),
);

function apiServers(...hosts: readonly number[]): ServicePlan {
  return plan('default/kubernetes', [frontend('default/kubernetes:https', '10.96.0.1', { endpoints: list(hosts) })]);
}

const OF_THE_USURPER = /^10\.0\./;

function heldBy(table: ForwardingTable, keys: RegExp): readonly string[] {
  return [...table.frontends()]
    .map(({ key }) => key)
    .filter((key) => keys.test(key))
    .sort();
}

t.test('an external IP does not get the address and port of an API server', (t) => {
  const rest = ['10.0.0.1:81/TCP', '10.0.0.9:80/TCP', '10.0.0.9:81/TCP'];
  for (const order of [
    [apiServers(1), USURPER],
    [USURPER, apiServers(1)],
  ]) {
    const table = new ForwardingTable(NODE);
    for (const one of order) table.setService(one.service, one);
    t.same(heldBy(table, OF_THE_USURPER), rest);
    t.same(table.conflictPairs().map(printConflictPair), [
      'conflict: IPv4 10.0.0.1:80/TCP belongs to default/kubernetes:https, an endpoint of which has this address; default/usurper does not get it',
    ]);
    t.match([...table.conflictsOf(USURPER)], [{ own: 'loser', conflict: { frontend: '10.0.0.1:80/TCP' } }]);
    table.takeChange();
    table.setService('default/kubernetes', apiServers(2));
    t.same(heldBy(table, OF_THE_USURPER), ['10.0.0.1:80/TCP', ...rest], 'when it has moved');
    t.ok(table.takeChange().frontends.has('10.0.0.1:80/TCP'));
    table.setService('default/kubernetes', apiServers(1, 2, 9));
    t.same(heldBy(table, OF_THE_USURPER), ['10.0.0.1:81/TCP', '10.0.0.9:81/TCP']);
    table.setService('default/kubernetes', null);
    t.equal(heldBy(table, OF_THE_USURPER).length, 4);
    t.equal(table.conflictCount, 0);
  }
  t.end();
});

t.test('where Services get whole addresses, an external IP gets no port of an API server on another node', (t) => {
  const settings = planSettings({ traits: { ...planSettings().traits, guardsServiceAddresses: true } });
  const there = planNode('IPv4', settings, node('me', ['192.168.0.2']), []);
  const table = new ForwardingTable(there);
  for (const one of [USURPER, apiServers(1)]) table.setService(one.service, one);
  t.same(heldBy(table, OF_THE_USURPER), ['10.0.0.9:80/TCP', '10.0.0.9:81/TCP']);
  t.match(table.conflictPairs(), [{ count: 2, first: { winner: 'default/kubernetes:https' } }]);
  table.takeChange();
  table.setNode(planNode('IPv4', settings, node('me', ['10.0.0.1']), []));
  t.same(heldBy(table, OF_THE_USURPER), ['10.0.0.1:81/TCP', '10.0.0.9:80/TCP', '10.0.0.9:81/TCP'], 'on its own node');
  t.same([...table.takeChange().frontends], ['10.0.0.1:81/TCP']);
  table.setNode(there);
  t.equal(heldBy(table, OF_THE_USURPER).length, 2);
  const sticky = frontend('default/usurper', '10.96.0.5', { clientKeys: { cluster: '10.0.0.1:81/TCP', local: null } });
  table.setService('default/usurper', { ...USURPER, frontends: [...USURPER.frontends, sticky] });
  const own = planNode(
    'IPv4',
    { ...settings, nodePortAddresses: [prefix('192.168.0.0/24')] },
    node('me', ['10.0.0.1']),
    [],
  );
  table.setNode({ ...own, ownAddresses: [] });
  table.takeChange();
  table.setNode(own);
  t.ok(table.takeChange().frontends.has(sticky.key), 'what remembers its clients by that frontend changes too');
  t.end();
});

t.test('the API server keeps external IPs of its own, and a load balancer gets any address', (t) => {
  const table = new ForwardingTable(NODE);
  const own = { ...frontend('default/kubernetes:https', '10.0.0.1'), kind: 'ExternalIP' as const };
  table.setService('default/kubernetes', plan('default/kubernetes', [...apiServers(1).frontends, own]));
  t.equal(table.frontend('10.0.0.1:80/TCP')?.servicePort, 'default/kubernetes:https');
  table.setService('default/kubernetes', apiServers(1));
  t.equal(table.frontend('10.0.0.1:80/TCP'), undefined);
  table.setService('a', plan('a', [{ ...frontend('a', '10.0.0.1'), kind: 'LoadBalancer' }]));
  t.equal(table.frontend('10.0.0.1:80/TCP')?.servicePort, 'a');
  t.end();
});

t.test('conflicts are counted by pair of Services in linear time', (t) => {
  const count = 20_000;
  const claims = (service: string): readonly FrontendPlan[] =>
    Array.from({ length: count }, (_, index) => {
      const host = `203.0.${index >> 8}.${index & 255}`;
      return frontend(service, host, { kind: 'ExternalIP', clientKeys: { cluster: '10.96.0.1:80/TCP', local: null } });
    });
  const table = new ForwardingTable(NODE);
  table.setService('a', plan('a', claims('a'), { creationTime: 2 }));
  const before = table.findingsVersion;
  table.setService('b', plan('b', claims('b'), { creationTime: 1 }));
  t.not(table.findingsVersion, before);
  t.equal(table.conflictCount, count);
  t.match(table.conflictPairs(), [{ count, first: { winner: 'b', loser: 'a' } }]);
  table.setService('b', null);
  t.same([table.conflictCount, table.conflictPairs()], [0, []]);
  t.end();
});

t.test('connection attempts are stale when an endpoint goes, or a frontend comes or goes', (t) => {
  const table = new ForwardingTable(NODE);
  const own = frontend('default/web', '10.96.0.1', { endpoints: list([1, 2]) });
  const left = (fields: Partial<FrontendPlan> | null): readonly string[] => {
    table.setService('default/web', fields === null ? null : plan('default/web', [{ ...own, ...fields }]));
    return [...table.takeChange().attempts];
  };
  t.same(left({}), [own.key], 'new: they began before its rules');
  t.same(left({ endpoints: list([1, 2, 3]) }), [], 'an endpoint comes');
  t.same(left({ endpoints: list([1, 2, 3]), masquerade: 'always' }), []);
  t.same(left({ endpoints: list([2, 3, 4]) }), [own.key], 'one comes and another goes');
  t.same(left({ endpoints: list([2]) }), [own.key]);
  t.same(left({ endpoints: list([2]), localEndpoints: list([1]) }), [], 'another list beside it');
  t.same(left({ endpoints: list([2]), localEndpoints: list([3]) }), [own.key]);
  t.same(left({ endpoints: list([2]) }), [own.key], 'the policy changes');
  const many = Array.from({ length: 200 }, (_, index) => index + 2);
  t.same(left({ endpoints: list(many) }), [own.key], 'too many come to look at which');
  t.same(left({ endpoints: list(many.slice(1)) }), [own.key]);
  t.same(left(null), [own.key], 'gone');
  table.setService('default/dns', plan('default/dns', [{ ...own, key: '10.96.0.1:80/UDP', protocol: 'UDP' }]));
  table.setService('default/dns', null);
  t.same([...table.takeChange().attempts], [], 'UDP has no attempts');
  t.end();
});
