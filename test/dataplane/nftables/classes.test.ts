import t from 'tap';
import { NO_RETRIES } from '../../../src/base/conntrack-timeouts.js';
import {
  classChainNames,
  classChains,
  className,
  classSize,
  parseClassName,
  type ServiceClass,
} from '../../../src/dataplane/nftables/classes.js';
import type { Rule } from '../../../src/dataplane/nftables/json.js';
import type { NodePlan } from '../../../src/plan/types.js';
import { prefix } from '../../support/rows.js';

const NODE: NodePlan = {
  family: 'IPv4',
  localDetector: { type: 'source-prefix', prefix: prefix('10.0.0.0/8') },
  masqueradeAll: false,
  masqueradeMark: 0x4000,
  nodePortPrefixes: null,
  nodePortsOnLoopback: false,
  nodePortListener: null,
  nodePortAddresses: [],
  ownAddresses: null,
  clientPrefix: 32,
  retryTimes: NO_RETRIES,
  address: null,
  sharesClusterIPs: false,
  serviceCIDRs: [],
};

const MOST = 300;

const pick = (size: number): ServiceClass => ({
  shard: 0,
  kind: 'pick',
  draw: 'even',
  size,
  localSize: 0,
  retry: null,
  sticky: false,
});

/** The moduli a class draws with, in order, read off its rules. */
function moduli(size: number): readonly number[] {
  const [chain] = classChains(pick(size), NODE);
  return (chain?.rules ?? []).map(modulusOf);
}

function modulusOf(rule: Rule): number {
  const found = /"mod":(\d+)/.exec(JSON.stringify(rule));
  if (found === null) throw new Error(`no draw in ${JSON.stringify(rule)}`);
  return Number(found[1]);
}

/** The exact probability of each of `count` filled slots: every draw that hits ends, every other goes on to the next. */
function probabilities(
  count: number,
  draws: readonly number[],
): { readonly slots: readonly number[]; readonly none: number } {
  const slots = new Array<number>(count).fill(0);
  let undecided = 1;
  for (const modulus of draws) {
    const reachable = Math.min(count, modulus);
    for (let slot = 0; slot < reachable; slot++) slots[slot] = (slots[slot] ?? 0) + undecided / modulus;
    undecided *= 1 - reachable / modulus;
  }
  return { slots, none: undecided };
}

/** Every size that a class can have while there are `count` endpoints: reached by any history of at most MOST endpoints. */
function sizesFor(count: number): readonly number[] {
  const sizes = [0, ...Array.from({ length: 10 }, (_, exponent) => 2 ** exponent)];
  return [...new Set(sizes.map((current) => classSize(count, current)))];
}

t.test('every endpoint is picked with the same probability within 0.7 %', (t) => {
  let worst = { deviation: 0, count: 0, size: 0 };
  for (let count = 1; count <= MOST; count++) {
    for (const size of sizesFor(count)) {
      const { slots, none } = probabilities(count, moduli(size));
      if (none > 1e-15) t.fail(`${count} endpoints in a class of ${size}: none with probability ${none}`);
      for (const probability of slots) {
        const deviation = Math.abs(probability * count - 1);
        if (deviation > worst.deviation) worst = { deviation, count, size };
      }
    }
  }
  t.ok(worst.deviation < 0.007, 'the worst class', worst);
  t.ok(worst.deviation > 0.001, 'the bound says something', worst);
  t.end();
});

t.test('a size class that is more than half full is even within 1/256', (t) => {
  for (let count = 1; count <= MOST; count++) {
    const size = classSize(count, 0);
    const { slots } = probabilities(count, moduli(size));
    const deviation = Math.max(...slots.map((probability) => Math.abs(probability * count - 1)));
    if (deviation > 1 / 256) t.fail(`${count} in ${size}: ${deviation}`);
  }
  t.pass();
  t.end();
});

t.test('a new Service gets the smallest class that holds it', (t) => {
  t.same(
    [0, 1, 2, 3, 4, 5, 8, 9, 64, 65].map((count) => classSize(count, 0)),
    [1, 1, 2, 4, 4, 8, 8, 16, 64, 128],
  );
  t.end();
});

t.test('a Service keeps its class while it shrinks to a quarter, small ones always', (t) => {
  t.equal(classSize(17, 16), 32, 'grows at once');
  t.equal(classSize(16, 64), 64, 'a quarter is kept');
  t.equal(classSize(15, 64), 16, 'less is not');
  t.equal(classSize(1, 8), 8);
  t.equal(classSize(0, 64), 64, 'while it is empty');
  t.equal(classSize(9, 8), 16);
  for (let count = 0; count <= MOST; count++) {
    for (const size of sizesFor(count)) {
      if (size < count || !Number.isInteger(Math.log2(size))) t.fail(`${count} endpoints in a class of ${size}`);
      if (classSize(count, size) !== size) t.fail(`${count} endpoints leave the class of ${size} they came to`);
    }
  }
  t.end();
});

t.test('a Service that grows and shrinks around a boundary changes its size class once', (t) => {
  let size = classSize(8, 0);
  let changes = 0;
  for (let round = 0; round < 50; round++) {
    const next = classSize(round % 2 === 0 ? 9 : 8, size);
    if (next !== size) changes++;
    size = next;
  }
  t.equal(changes, 1);
  t.end();
});

t.test('names of size classes parse back', (t) => {
  const classes: ServiceClass[] = [];
  for (const shard of [null, 0, 7]) {
    for (const sticky of [false, true]) {
      for (const draw of ['even', 'random', 'address', 'address-port'] as const) {
        const retry = sticky ? 'tcp-10' : draw === 'even' ? 'off' : null;
        for (const size of draw === 'even' ? [1, 8, 256] : [1, 251, 8191]) {
          classes.push({ shard, kind: 'pick', draw, size, localSize: 0, retry, sticky });
          classes.push({ shard, kind: 'external', draw, size, localSize: 0, retry, sticky });
          classes.push({
            shard,
            kind: 'external-local',
            draw,
            size,
            localSize: draw === 'even' ? 4 : 251,
            retry,
            sticky,
          });
        }
      }
    }
  }
  t.equal(new Set(classes.map(className)).size, classes.length, 'all different');
  for (const service of classes) t.same(parseClassName(className(service)), service);
  t.end();
});

t.test('other names are not taken for size classes', (t) => {
  for (const name of [
    '',
    'dispatch',
    'pick',
    'pick-3-shard-0',
    'pick-04-shard-0',
    'pick-0-shard-0',
    'pick-4',
    'nodeport-pick-4-shard-1',
    'pick-4-4-shard-0',
    'external-local-4-shard-0',
    'external-local-4-3-shard-0',
    'pick-4-shard-0-sticky-',
    'pick-4-shard-0-retry-',
    'pick-4-shard-0-retry-5',
    'pick-4-shard-0-retry-tcp-0',
    'pick-4-shard-0-retry-sctp-1',
    'pick-4-shard-0-sticky-retry-off',
    'pick-4-shard-0-sticky-60',
    'pick-4-sticky-shard-0',
    'local-pick-4-shard-0',
    'pick-table-0-shard-0',
    'pick-table-8192-shard-0',
    'pick-hash-251-shard-0',
    'pick-hash-port-251-shard-0',
    'service-ULMVA6XW-ns1/svc1/tcp/p80',
  ]) {
    t.equal(parseClassName(name), null, name);
  }
  t.end();
});

t.test('a size class comes with every chain that it jumps to, those first', (t) => {
  const names = (service: ServiceClass, node = NODE): readonly string[] =>
    classChains(service, node).map(({ name }) => name);
  const local: ServiceClass = {
    shard: null,
    kind: 'external-local',
    draw: 'even',
    size: 8,
    localSize: 2,
    retry: null,
    sticky: true,
  };
  t.same(names(local), [
    'nodeport-pick-8',
    'nodeport-pick-8-sticky',
    'nodeport-local-pick-2',
    'nodeport-local-pick-2-sticky',
    'nodeport-external-local-8-2-sticky',
  ]);
  for (const service of [local, pick(4), { ...pick(4), sticky: true, kind: 'external' as const }])
    t.same([...names(service)].reverse(), classChainNames(service), 'whose names are known without their rules');
  t.same(names({ ...pick(4), kind: 'external' }), ['pick-4-shard-0', 'external-4-shard-0']);
  t.same(names(pick(1)), ['pick-1-shard-0']);
  const chains = classChains(local, { ...NODE, localDetector: null });
  t.equal(chains[chains.length - 1]?.rules.length, 2, 'without a detector pods are not distinguished');
  t.end();
});

t.test('a slot table is picked from once, at random or by hash, and a missing slot leads to the first', (t) => {
  const rules = (draw: ServiceClass['draw'], size: number): readonly string[] =>
    (classChains({ ...pick(size), draw }, NODE)[0]?.rules ?? []).map((rule) => JSON.stringify(rule));
  const [random, zero, ...more] = rules('random', 251);
  t.match(random, /"numgen":\{"mode":"random","mod":251/);
  t.match(zero, /"numgen":\{"mode":"random","mod":1,/);
  t.same(more, []);
  t.match(
    rules('address', 251)[0],
    /"jhash":\{"mod":251,"seed":\d+,"expr":\{"payload":\{"protocol":"ip","field":"saddr"/,
  );
  t.match(rules('address-port', 251)[0], /"jhash":.*"concat":.*"saddr".*"sport"/);
  t.equal(rules('address', 1).length, 1, 'of one slot nothing is hashed');
  t.end();
});
