import t from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { FRONTEND_FIELDS, sameFrontend } from '../../src/plan/frontend-fields.js';
import type { FrontendPlan } from '../../src/plan/types.js';
import { address, prefix } from '../support/rows.js';

function list(hosts: readonly number[]): EndpointList {
  return EndpointList.of(
    'IPv4',
    hosts.map((host) => ({ address: address(`10.0.0.${host}`), port: 80 })),
  );
}

const shares = { weights: [1], slots: Uint16Array.of(0) };
const local = { key: 'b', endpoints: list([1]), apart: list([2]) };

function make(): FrontendPlan {
  return {
    key: '10.96.0.1:80/TCP',
    kind: 'ClusterIP',
    family: 'IPv4',
    address: address('10.96.0.1'),
    protocol: 'TCP',
    port: 80,
    servicePort: 'svc',
    endpoints: list([1]),
    localEndpoints: null,
    masquerade: 'off-cluster',
    whenEmpty: 'reject',
    affinitySeconds: null,
    retrySeconds: null,
    clientRoom: null,
    loadBalancerFlags: 0,
    clientKeys: { cluster: 'a', local: { ...local, endpoints: list([1]), apart: list([2]) } },
    sourceRanges: [prefix('10.0.0.0/8')],
    flowEndpoints: list([1]),
    draining: null,
    balance: { by: 'random', endpoints: { weights: [1], slots: Uint16Array.of(0) }, localEndpoints: null },
  };
}

/** Other values than those of `make`, for every field that is not of the key. */
type Others = Omit<{ readonly [Name in keyof FrontendPlan]: readonly FrontendPlan[Name][] }, KeyField>;
type KeyField = 'key' | 'family' | 'address' | 'protocol' | 'port';

const OTHERS: Others = {
  kind: ['ExternalIP'],
  servicePort: ['svc:web'],
  endpoints: [list([2]), list([])],
  localEndpoints: [list([])],
  masquerade: ['always'],
  whenEmpty: ['drop'],
  affinitySeconds: [30],
  retrySeconds: [0, 2],
  clientRoom: ['10.96.0.9:80/TCP'],
  loadBalancerFlags: [1],
  clientKeys: [
    null,
    { cluster: 'c', local },
    { cluster: 'a', local: null },
    { cluster: 'a', local: { ...local, key: 'c' } },
    { cluster: 'a', local: { ...local, endpoints: list([3]) } },
    { cluster: 'a', local: { ...local, apart: list([]) } },
  ],
  sourceRanges: [null, [prefix('10.0.0.0/8'), prefix('11.0.0.0/8')]],
  flowEndpoints: [null, list([1, 2])],
  draining: [list([3])],
  balance: [
    null,
    { by: 'address', endpoints: shares, localEndpoints: null },
    { by: 'random', endpoints: { ...shares, weights: [2] }, localEndpoints: null },
    { by: 'random', endpoints: { ...shares, slots: Uint16Array.of(0, 0) }, localEndpoints: null },
    { by: 'random', endpoints: { ...shares, slots: null }, localEndpoints: null },
    { by: 'random', endpoints: shares, localEndpoints: shares },
  ],
};

t.test('every field of a frontend counts as a change, and an equal frontend does not', (t) => {
  t.ok(sameFrontend(make(), make()));
  t.ok(sameFrontend(undefined, undefined));
  t.notOk(sameFrontend(make(), undefined));
  for (const [name, values] of Object.entries(OTHERS)) {
    for (const value of values) {
      const other = { ...make(), [name]: value };
      t.notOk(sameFrontend(make(), other), name);
      t.notOk(sameFrontend(other, make()), `${name}, and back`);
    }
  }
  t.end();
});

t.test('every compared field of a frontend has another value in this test', (t) => {
  const isCompared = ([, { same }]: readonly [string, { readonly same: unknown }]): boolean =>
    same !== FRONTEND_FIELDS.key.same;
  const compared = Object.entries(FRONTEND_FIELDS).filter(isCompared);
  t.same(compared.map(([name]) => name).sort(), Object.keys(OTHERS).sort());
  t.end();
});
