import t from 'tap';
import { BUILT_IN_TIMEOUTS } from '../../../src/base/conntrack-timeouts.js';
import {
  addChain,
  addRule,
  addSet,
  addTable,
  deleteChain,
  deleteSet,
  deleteTable,
  flushChain,
  flushSet,
  match,
  meta,
} from '../../../src/dataplane/nftables/json.js';
import { clientsMapOf, countedSets, staticSets } from '../../../src/dataplane/nftables/schema.js';
import { renderTable } from '../../../src/dataplane/nftables/render.js';
import { service, slice } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

const where = { family: 'ip', table: 'kube-proxy' } as const;

t.test('nft commands are written as libnftables-json(5) defines them', (t) => {
  t.same(addTable(where), {
    add: { table: { family: 'ip', name: 'kube-proxy', comment: 'rules of the Kubernetes service proxy' } },
  });
  t.same(deleteTable(where), { delete: { table: { family: 'ip', name: 'kube-proxy' } } });
  t.same(addChain(where, { name: 'c', hook: null, rules: [] }), { add: { chain: { ...where, name: 'c' } } });
  t.same(addChain(where, { name: 'c', hook: { type: 'nat', hook: 'output', prio: -100 }, rules: [] }), {
    add: { chain: { ...where, name: 'c', type: 'nat', hook: 'output', prio: -100, policy: 'accept' } },
  });
  t.same(flushChain(where, 'c'), { flush: { chain: { ...where, name: 'c' } } });
  t.same(deleteChain(where, 'c'), { delete: { chain: { ...where, name: 'c' } } });
  t.same(addRule(where, 'c', [match(meta('l4proto'), 'tcp')]), {
    add: {
      rule: { ...where, chain: 'c', expr: [{ match: { op: '==', left: { meta: { key: 'l4proto' } }, right: 'tcp' } }] },
    },
  });
  t.same(flushSet(where, 's'), { flush: { set: { ...where, name: 's' } } });
  t.same(deleteSet(where, 's'), { delete: { set: { ...where, name: 's' } } });
  t.end();
});

t.test('nft JSON: one type is a word, several are a list, and absent fields are omitted', (t) => {
  const plain = { name: 's', type: ['ipv4_addr'], map: null, flags: [], timeout: null, size: null } as const;
  t.same(addSet(where, plain), { add: { set: { ...where, name: 's', type: 'ipv4_addr' } } });
  t.same(addSet(where, { ...plain, type: ['ipv4_addr', 'inet_proto'], map: 'verdict' }), {
    add: { map: { ...where, name: 's', type: ['ipv4_addr', 'inet_proto'], map: 'verdict' } },
  });
  t.same(addSet(where, { ...plain, map: ['ipv4_addr'], flags: ['timeout', 'dynamic'], timeout: 60, size: 10 }), {
    add: {
      map: {
        ...where,
        name: 's',
        type: 'ipv4_addr',
        map: 'ipv4_addr',
        flags: ['timeout', 'dynamic'],
        timeout: 60,
        size: 10,
      },
    },
  });
  t.end();
});

t.test('the addon compiles every set of both families, each to another declaration or name', (t) => {
  for (const [family, nft] of [
    ['IPv4', 'ip'],
    ['IPv6', 'ip6'],
  ] as const) {
    const sets = [...staticSets(family), ...countedSets(family), clientsMapOf(family, '10.96.0.10-tcp-80')];
    const commands = sets.map((set) => addSet({ family: nft, table: 'kube-proxy' }, set));
    const listing = compiler.nftCompile(nft, 'kube-proxy', commands);
    t.equal(listing.sets.length, sets.length);
    t.equal(new Set(listing.sets.map(({ name }) => name)).size, sets.length);
  }
  t.end();
});

t.test('a rendered table has every element in full', (t) => {
  const rig = new Rig();
  rig.commit([
    ...NODE_ROWS,
    service('web', { clusterIPs: ['10.96.0.10'], loadBalancer: ['1.2.3.4'], sourceRanges: ['203.0.113.0/24'] }),
    slice('web', [{ address: '10.0.1.1', node: 'me' }], { ports: [{ port: 8080 }] }),
  ]);
  rig.plan();
  const text = JSON.stringify(renderTable(compiler, rig.table, false, BUILT_IN_TIMEOUTS));
  for (const part of [
    '[{"elem":{"val":{"concat":["10.96.0.10","tcp",80]},"comment":"ClusterIP default/web"}},{"goto":{"target":"pick-1-shard-',
    '[{"concat":[0,"10.96.0.10","tcp",80]},{"concat":["10.0.1.1",8080]}]',
    '{"concat":["203.0.113.0",24,"1.2.3.4","tcp",80]}',
    '"elem":["10.96.0.10"]',
    '{"concat":["10.0.1.1","10.0.1.1"]}',
  ]) {
    t.ok(text.includes(part), part);
  }
  t.end();
});
