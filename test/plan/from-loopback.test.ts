import t from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { endpointsFromLoopback, pickEndpoint } from '../../src/plan/from-loopback.js';
import type { FrontendPlan } from '../../src/plan/types.js';
import { address } from '../support/rows.js';

function list(hosts: readonly number[]): EndpointList {
  return EndpointList.of(
    'IPv4',
    hosts.map((host) => ({ address: address(`10.0.0.${host}`), port: 80 })),
  );
}

type Parts = Pick<FrontendPlan, 'endpoints' | 'localEndpoints' | 'balance'>;
const ALL: Parts = { endpoints: list([1, 2, 3]), localEndpoints: null, balance: null };

/** How many of so many equally distant draws each place gets. */
function drawn(parts: Parts, draws: number): readonly number[] {
  const endpoints = endpointsFromLoopback(parts);
  const counts = Array.from({ length: endpoints.list.count }, () => 0);
  for (let draw = 0; draw < draws; draw++) {
    const place = pickEndpoint(endpoints, draw / draws);
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return counts;
}

t.test('connections from loopback are shared equally, or by weight', (t) => {
  t.same(drawn(ALL, 300), [100, 100, 100]);
  const endpoints = { weights: [1, 2, 7], slots: null };
  t.same(drawn({ ...ALL, balance: { by: 'random', endpoints, localEndpoints: null } }, 1000), [100, 200, 700]);
  t.end();
});

t.test('with policy Local connections from loopback go to endpoints of this node, by their weights', (t) => {
  const local: Parts = { ...ALL, localEndpoints: list([2, 3]) };
  t.same(endpointsFromLoopback(local).list.toStrings(), ['10.0.0.2:80', '10.0.0.3:80']);
  const balance = {
    by: 'random',
    endpoints: { weights: [1, 1, 1], slots: null },
    localEndpoints: { weights: [1, 3], slots: null },
  } as const;
  t.same(drawn({ ...local, balance }, 400), [100, 300]);
  t.same(drawn({ ...local, localEndpoints: list([]) }, 0), []);
  t.end();
});
