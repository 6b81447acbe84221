import t from 'tap';
import { collect } from '../../src/plan/candidates.js';
import type { NodeFacts } from '../../src/plan/facts.js';
import type { PolicyUse, Selection } from '../../src/plan/selection-rules.js';
import { selectAmong, selectEndpoints } from '../../src/plan/selection.js';
import { Tally } from '../../src/plan/selection-rules.js';
import { selectUniform } from '../../src/plan/uniform-selection.js';
import type { EndpointSliceRow } from '../../src/state/rows.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';
import { port, slice, type EndpointText } from '../support/rows.js';

/** Endpoints among which nothing is to be decided. The oracle of `selection.test.ts` judges the same by single endpoints. */

const NODE: NodeFacts = { name: 'me', zone: 'a', addresses: { IPv4: null, IPv6: null } };
const CLUSTER: PolicyUse = { cluster: true, local: false, onePort: false };

function printed(selection: Selection): unknown {
  const { cluster, local, serving, any, hairpin, own, readyHere, otherPorts } = selection;
  const lists = [cluster, local, serving].map((list) => list.toStrings());
  return { lists, any, sets: [hairpin, own, readyHere, otherPorts].map((set) => [...set].sort()) };
}

function byRules(slices: readonly EndpointSliceRow[]): Selection {
  const candidates = collect('IPv4', port(), slices);
  return selectAmong('IPv4', candidates, Tally.of(candidates, NODE), NODE, CLUSTER);
}

t.test('what is selected is what the rules select', (t) => {
  const random = new SeededRandom(7);
  for (let round = 0; round < rounds(500); round++) {
    const hosts = random.shuffled([...Array(random.below(40)).keys()]);
    const endpoint = (host: number): EndpointText => ({
      address: `${random.pick([1, 10, 127, 200, 255])}.${host}.${random.below(256)}.${random.below(256)}`,
      node: random.pick(['me', 'other', 'other', null]),
    });
    const half = random.below(hosts.length + 1);
    const slices = [
      slice('svc', hosts.slice(0, half).map(endpoint), { name: 'a', ports: [{ port: random.pick([1, 80, 65_535]) }] }),
      slice('svc', hosts.slice(half).map(endpoint), { name: 'b', ports: [{ port: 8080 }, { name: 'other', port: 9 }] }),
      slice('svc', [{ address: 'fd00::1' }], { name: 'c', family: 'IPv6' }),
      slice('svc', [{ address: '10.0.0.1', state: '' }], { name: 'd', ports: [{ name: 'other' }] }),
    ];
    const selection = selectUniform('IPv4', port(), slices, NODE, CLUSTER);
    if (selection === null) throw new Error(`round ${round}: nothing is to be decided`);
    t.same(printed(selection), printed(byRules(slices)), `round ${round}`);
  }
  t.end();
});

const PLAIN: EndpointText = { address: '10.0.0.1' };

const OTHERWISE: Readonly<Record<string, readonly EndpointSliceRow[]>> = {
  'not ready': [slice('svc', [PLAIN, { address: '10.0.0.2', state: 's' }])],
  'not serving': [slice('svc', [PLAIN, { address: '10.0.0.2', state: 'r' }])],
  terminating: [slice('svc', [PLAIN, { address: '10.0.0.2', state: 'rst' }])],
  'hinted for a zone': [slice('svc', [{ ...PLAIN, zones: ['a'] }])],
  'hinted for a node': [slice('svc', [{ ...PLAIN, nodes: ['me'] }])],
  'there twice': [slice('svc', [PLAIN], { name: 'a' }), slice('svc', [PLAIN], { name: 'b' })],
  'on two ports': [slice('svc', [PLAIN], { ports: [{ port: 80 }, { port: 81 }] })],
};

for (const [what, slices] of Object.entries(OTHERWISE)) {
  t.test(`an endpoint that is ${what} is for the rules`, (t) => {
    t.equal(selectUniform('IPv4', port(), slices, NODE, CLUSTER), null);
    t.same(printed(selectEndpoints('IPv4', port(), slices, NODE, CLUSTER)), printed(byRules(slices)));
    t.end();
  });
}

t.test('so are IPv6, policy Local, and lists of one port', (t) => {
  const slices = [slice('svc', [PLAIN])];
  t.not(selectUniform('IPv4', port(), slices, NODE, CLUSTER), null);
  t.equal(selectUniform('IPv6', port(), slices, NODE, CLUSTER), null);
  for (const uses of [{ local: true }, { onePort: true }, { cluster: false }])
    t.equal(selectUniform('IPv4', port(), slices, NODE, { ...CLUSTER, ...uses }), null);
  t.end();
});
