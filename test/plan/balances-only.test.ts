import t from 'tap';
import type { PlanSettings } from '../../src/plan/facts.js';
import { Planner } from '../../src/plan/planner.js';
import { explain } from '../../src/plan/explain.js';
import { printExplanation } from '../../src/plan/explain-text.js';
import { parseQuestion } from '../../src/plan/question.js';
import { printLimitation, printTable } from '../../src/plan/text.js';
import { KEEPS_DESTINATION, type Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings } from '../support/plan-settings.js';
import { node, service, slice } from '../support/rows.js';

/** What is planned where the platform spreads connections and does nothing else. */

const SETTINGS = planSettings({
  traits: {
    ...planSettings().traits,
    guardsClusterAddresses: false,
    balancesOnly: true,
  },
});

function planned(...rows: readonly Row[]) {
  return plannedBy(SETTINGS, rows);
}

function plannedBy(settings: PlanSettings, rows: readonly Row[]) {
  const store = new Store();
  store.register('test').apply([node('me', ['192.168.0.2']), ...rows].map((row) => ({ type: 'upsert' as const, row })));
  const planner = new Planner(settings);
  planner.update(store.snapshot, store.takeChanges());
  const table = planner.tables.IPv4;
  const own = [...table.ownEndpoints];
  const ask = (from: string, to: string): readonly string[] =>
    printExplanation(explain(store.snapshot, table, settings, [], parseQuestion(from, to)));
  return { table, own, lines: printTable(table), ask };
}

function endpointsOf({ lines }: Pick<ReturnType<typeof planned>, 'lines'>, key: string): readonly string[] {
  const start = `IPv4 frontend ${key} endpoint `;
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
}

const HERE_AND_THERE = slice('web', [
  { address: '10.0.0.1', node: 'me' },
  { address: '10.0.1.1', node: 'other' },
  { address: '198.51.100.1' },
]);

t.test('kernelspace: policy Local has the endpoints of this node for all clients, and may have none', (t) => {
  const local = planned(
    service('web', {
      loadBalancer: ['192.0.2.1'],
      externalTrafficPolicy: 'Local',
      sourceRanges: ['198.51.100.0/24'],
      ports: [{ port: 80, nodePort: 30_080 }],
    }),
    HERE_AND_THERE,
  );
  t.same(endpointsOf(local, '192.0.2.1:80/TCP'), ['10.0.0.1:80']);
  t.same(endpointsOf(local, 'nodeport:30080/TCP'), ['10.0.0.1:80']);
  t.same(endpointsOf(local, '10.96.0.10:80/TCP'), ['10.0.0.1:80', '10.0.1.1:80', '198.51.100.1:80']);
  t.same(local.own, ['10.0.0.1'], 'those of this node are known, and not those of no node');
  t.equal(local.table.frontend('192.0.2.1:80/TCP')?.sourceRanges, null, 'every source is admitted');
  t.match(local.ask('203.0.113.1', '192.0.2.1:80/TCP').join('\n'), /note +loadBalancerSourceRanges have no effect/);
  t.match([...local.table.limitations()].map(printLimitation), [
    /IPv4 default\/web: loadBalancerSourceRanges have no eff/,
  ]);
  t.equal(local.table.node.address, '192.168.0.2');
  t.equal(local.table.node.nodePortPrefixes, null);
  t.match(
    local.ask('203.0.113.1', '192.0.2.1:80/TCP').join('\n'),
    /externalTrafficPolicy Local: endpoints on this node/,
  );
  const elsewhere = planned(
    service('web', { externalIPs: ['192.0.2.1'], externalTrafficPolicy: 'Local' }),
    slice('web', [{ address: '10.0.1.1', node: 'other' }]),
  );
  t.match(elsewhere.ask('10.0.0.9', '192.0.2.1:80/TCP')[0], /left alone: the Service has no endpoint/);
  t.end();
});

t.test('kernelspace: preserved destinations use endpoints of this node, except for external IPs', (t) => {
  const kept = planned(
    service('web', {
      loadBalancer: ['192.0.2.1'],
      externalIPs: ['192.0.2.2'],
      ports: [{ port: 80, nodePort: 30_080 }],
      loadBalancerFlags: KEEPS_DESTINATION,
    }),
    HERE_AND_THERE,
  );
  t.same(endpointsOf(kept, '192.0.2.1:80/TCP'), ['10.0.0.1:80']);
  t.same(endpointsOf(kept, 'nodeport:30080/TCP'), ['10.0.0.1:80']);
  t.equal(endpointsOf(kept, '192.0.2.2:80/TCP').length, 3);
  t.equal(kept.table.frontend('192.0.2.1:80/TCP')?.localEndpoints, null, 'the policy is Cluster all the same');
  t.match(kept.ask('203.0.113.1', '192.0.2.1:80/TCP').join('\n'), /not on this node/);
  t.end();
});

t.test('kernelspace: a list has endpoints of one port: the most common, then the smallest', (t) => {
  const slices = (...ports: readonly number[]) =>
    ports.map((port, index) =>
      slice('web', [{ address: `10.0.1.${index + 1}`, node: 'other' }], { name: `web-${index}`, ports: [{ port }] }),
    );
  const most = planned(service('web'), ...slices(9000, 8080, 9000));
  t.same(endpointsOf(most, '10.96.0.10:80/TCP'), ['10.0.1.1:9000', '10.0.1.3:9000']);
  t.match(
    most.ask('10.0.0.9', '10.96.0.10:80/TCP').join('\n'),
    /10\.0\.1\.2:8080 +other +not used: most have another port/,
  );
  t.match([...most.table.limitations()], [{ servicePort: 'default/web', text: /^endpoints on port 8080 get no conn/ }]);
  t.same(endpointsOf(planned(service('web'), ...slices(9000, 8080)), '10.96.0.10:80/TCP'), ['10.0.1.2:8080']);
  most.table.setService('default/web', null);
  t.same([...most.table.limitations()], []);
  t.end();
});

t.test('kernelspace: SCTP has no frontend, and the platform decides about sources', (t) => {
  const { table, lines, ask } = planned(
    service('web', { ports: [{ port: 80 }, { port: 9, protocol: 'SCTP' }], sourceRanges: ['198.51.100.0/24'] }),
    HERE_AND_THERE,
  );
  t.notMatch(lines.join('\n'), /SCTP/);
  t.match([...table.limitations()], [{ text: /^SCTP is not served/ }], 'ranges are for addresses of load balancers');
  const [head, ...rest] = ask('203.0.113.1', '10.96.0.10:80/TCP');
  t.match(head, /forwarded to one of 3 endpoints, with the source that the platform gives it/);
  t.match(rest.join('\n'), /masquerade +as the platform does it/);
  t.end();
});

t.test("kernelspace: endpoints beyond the platform's limit are left out, which is reported", (t) => {
  const settings = planSettings({
    traits: { ...SETTINGS.traits, endpointLimits: { internal: Infinity, external: 2 } },
  });
  const { table, lines, ask } = plannedBy(settings, [service('web', { externalIPs: ['192.0.2.9'] }), HERE_AND_THERE]);
  t.same(endpointsOf({ lines }, '10.96.0.10:80/TCP').length, 3);
  t.same(endpointsOf({ lines }, '192.0.2.9:80/TCP'), ['10.0.0.1:80', '10.0.1.1:80']);
  t.match(
    [...table.limitations()].map(({ text }) => text),
    [/^of 3 endpoints 2 get connections: .*direct server return$/],
  );
  t.match(ask('203.0.113.1', '192.0.2.9:80/TCP').join('\n'), /198\.51\.100\.1:80.*this platform has no more/);
  t.end();
});
