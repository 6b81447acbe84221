import t from 'tap';
import { BUILT_IN_TIMEOUTS, NO_RETRIES, type RetryTimes } from '../../../src/base/conntrack-timeouts.js';
import {
  addRule,
  addTimeout,
  deleteObject,
  flushChain,
  type TimeoutDeclaration,
} from '../../../src/dataplane/nftables/json.js';
import { declarationNamed, RetryTimeouts } from '../../../src/dataplane/nftables/retry.js';
import { NO_TIMEOUT_OBJECTS } from '../../../src/dataplane/nftables/timeout-support.js';
import type { NftCommand } from '../../../src/native/contract.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice } from '../../support/rows.js';
import { commandsOf, compiler, NODE_ROWS, Rig, webOf, where } from './rig.js';

const TIMES = { tcp: 1, dns: 2 };
const TCP = 'connect-retry-tcp-1-1-60-432000-120-60-30-120-10-120-300-300';
const DNS = 'connect-retry-udp-2-2-120';

const PORTS = [
  { name: 'web', port: 8080 },
  { name: 'dns', port: 53, protocol: 'UDP' as const },
];

const ROWS = [
  ...NODE_ROWS,
  service('web', { clusterIPs: ['10.96.0.10'], type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }),
  webOf(3),
];

async function started(kernel = new FakeKernel(compiler), retryTimes: RetryTimes = TIMES): Promise<Rig> {
  const rig = new Rig(kernel, 'IPv4', { retryTimes });
  rig.commit(ROWS);
  await rig.sync();
  return rig;
}

function timeouts(rig: Rig): readonly string[] {
  return [...(rig.kernel.table('ip')?.timeouts.keys() ?? [])].sort();
}

function rulesOf(rig: Rig, chain: string): readonly string[] {
  return (rig.kernel.table('ip')?.chains.get(chain)?.rules ?? []).map(({ text }) => text);
}

t.test('new flows of Services get their own conntrack timeouts before an endpoint is picked', async (t) => {
  const rig = await started();
  t.same(timeouts(rig), [TCP, DNS]);
  t.match(rulesOf(rig, 'connect-retry').join('\n'), `name ${TCP}]`);
  for (const [name, { rules }] of rig.kernel.table('ip')?.chains ?? []) {
    const isPick = /^(?:nodeport-)?pick-/.test(name);
    const first = rules[0]?.text ?? '';
    if (isPick) t.match(first, 'jump connect-retry', name);
  }
  t.same(await rig.difference(), [], 'which is what the plan says');
});

t.test('timeout objects: a restart changes nothing, and external changes are repaired', async (t) => {
  const rig = await started();
  rig.restart();
  const committed = await rig.during(() => rig.sync());
  t.same(committed, [], 'a restart');
  await alter(rig, flushChain(where, 'connect-retry'), deleteObject(where, DNS, undefined));
  t.equal(await rig.dataplane.audit(), true);
  t.match((await rig.sync(true)).repairs, ['chain connect-retry was altered', `object ${DNS} was lost`]);
  t.same(timeouts(rig), [TCP, DNS]);
  await alter(rig, addTimeout(where, { ...declarationOf(TCP), name: 'others' }));
  t.match(await rig.difference(), ['+ IPv4 kernel others is needed by nothing']);
  await rig.sync(true);
  t.same(timeouts(rig), [TCP, DNS], 'nor is anything left that nothing needs');
  t.same(await rig.difference(), []);
});

function declarationOf(name: string): TimeoutDeclaration {
  const declaration = declarationNamed(name);
  if (declaration === null) throw new Error(`not a name of ours: ${name}`);
  return declaration;
}

/** Somebody else's transaction. */
async function alter({ kernel }: Rig, ...commands: readonly NftCommand[]): Promise<void> {
  await kernel.nftTransact({ ...where, operations: [{ type: 'commands', commands }] });
}

t.test('a timeout object with foreign values is replaced, with the table', async (t) => {
  const rig = await started();
  const rules = rig.kernel.table('ip')?.chains.get('connect-retry')?.rules ?? [];
  const policy = { ...BUILT_IN_TIMEOUTS.tcp, syn_sent: 1, established: 5 };
  await alter(
    rig,
    flushChain(where, 'connect-retry'),
    deleteObject(where, TCP, undefined),
    addTimeout(where, { name: TCP, protocol: 'tcp', policy }),
    ...rules.map(({ statements }) => addRule(where, 'connect-retry', statements)),
  );
  t.match(await rig.difference(), [/^\+ IPv4 kernel ct timeout .* established 5 /]);
  t.match((await rig.sync(true)).repairs, [`object ${TCP} was altered`]);
  t.same(await rig.difference(), []);
});

t.test('a changed sysctl replaces timeout object and rule in one transaction', async (t) => {
  const rig = await started();
  t.equal(await rig.dataplane.audit(), false);
  rig.timeouts = { ...BUILT_IN_TIMEOUTS, tcp: { ...BUILT_IN_TIMEOUTS.tcp, established: 86_400 } };
  t.equal(await rig.dataplane.audit(), true, 'an audit finds it');
  const committed = await rig.during(() => rig.sync(true));
  const next = TCP.replace('432000', '86400');
  t.same(commandsOf(committed.slice(0, 1)), [
    `add ct timeout ${next}`,
    'flush chain connect-retry',
    'add rule connect-retry',
    'add rule connect-retry',
  ]);
  t.same(commandsOf(committed.slice(1)), [`delete ct timeout ${TCP}`]);
  t.same(timeouts(rig), [next, DNS].sort());
  t.equal(await rig.dataplane.audit(), false);
  t.same(await rig.difference(), []);
});

t.test('without retry times no timeout object is left; switching them on changes no element', async (t) => {
  const rig = await started(undefined, NO_RETRIES);
  t.same(timeouts(rig), []);
  t.notMatch(rulesOf(rig, 'nodeport-pick-4').join('\n'), 'connect-retry');
  t.same(await rig.difference(), []);
  rig.configure({ retryTimes: TIMES });
  t.match(await rig.sync(), { elementOperations: 0 });
  t.same(timeouts(rig), [TCP, DNS]);
  rig.configure({ retryTimes: NO_RETRIES });
  await rig.sync();
  t.same(timeouts(rig), []);
  t.same(await rig.difference(), []);
});

t.test('a kernel without timeout objects gets rules without them, and the report says so', async (t) => {
  const kernel = new FakeKernel(compiler, { withoutTimeouts: true });
  const rig = new Rig(kernel, 'IPv4', { retryTimes: TIMES });
  rig.commit(ROWS);
  t.match(await rig.sync(), { limitations: [NO_TIMEOUT_OBJECTS] });
  t.same(rulesOf(rig, 'connect-retry'), []);
  t.match(await rig.difference(), ['- IPv4 node connect-retry 1s', '- IPv4 node dns-retry 2s'], 'diff names it');
  rig.commit([webOf(2)]);
  t.match(await rig.sync(), { transactions: 1, limitations: [NO_TIMEOUT_OBJECTS] });
  t.equal(await rig.dataplane.audit(), false);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
});

t.test('a kernel short of memory is asked again for timeout objects', async (t) => {
  const rig = new Rig(new FakeKernel(compiler), 'IPv4', { retryTimes: TIMES });
  rig.commit(ROWS);
  rig.kernel.faults.next({ type: 'refuse', errno: 'ENOMEM', operation: 1 });
  await t.rejects(rig.sync(), /ENOMEM/);
  t.match(await rig.sync(), { limitations: [] });
  t.same(timeouts(rig), [TCP, DNS]);
});

t.test('a timeout sysctl of 0 is handled as the kernel does', async (t) => {
  const { tcp, udp } = BUILT_IN_TIMEOUTS;
  const rig = await started();
  rig.timeouts = { tcp: { ...tcp, close: 0, syn_sent: 0 }, udp: { ...udp, unreplied: 0 } };
  t.match(await rig.sync(true), { limitations: [] });
  t.same(timeouts(rig), ['connect-retry-tcp-1-0-60-432000-120-60-30-120-0-120-300-300', 'connect-retry-udp-2-0-120']);
  t.same(await rig.difference(), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart');
});

t.test('the trial for timeout objects changes nothing', async (t) => {
  const rig = await started();
  t.same([...rig.kernel.tableNames()], ['ip kube-proxy']);
});

t.test('names of timeout objects contain all values', (t) => {
  const objects = new RetryTimeouts({ ...BUILT_IN_TIMEOUTS, udp: { unreplied: 1, replied: 7 } });
  for (const retry of ['tcp-1', 'tcp-60', 'udp-2'] as const) {
    const declaration = objects.declaration(retry);
    t.same(declarationNamed(declaration.name), declaration);
  }
  t.same(objects.declaration('udp-2').policy, { unreplied: 1, replied: 7 }, 'never longer than the sysctl');
  for (const name of ['', 'connect-retry', 'connect-retry-tcp-1', `${TCP}-1`, `${TCP}x`, 'connect-retry-udp-0-1-2'])
    t.equal(declarationNamed(name), null, name);
  t.end();
});

t.test('Services with their own retry times have their own classes, removed with the last of them', async (t) => {
  const rig = await started();
  const asked = (fields: { readonly connectRetry?: number; readonly udpRetry?: number }, name = 'other'): void => {
    const ports = [
      { name: 'web', port: 80, nodePort: 30081 },
      { name: 'dns', port: 53, nodePort: 30053, protocol: 'UDP' as const },
    ];
    rig.commit([service(name, { clusterIPs: ['10.96.0.11'], type: 'NodePort', ports, ...fields })]);
  };
  asked({ connectRetry: 5, udpRetry: 0 });
  await rig.sync();
  t.same(timeouts(rig), [TCP, TCP.replace('1-1-', '5-5-'), DNS].sort());
  const lines = await rig.dataplane.dump(rig.table);
  t.same(await rig.difference(), []);
  t.notMatch(lines.join('\n'), 'retry 5s', 'nothing is said of a frontend without endpoints');
  rig.commit([slice('other', [{ address: '10.0.2.1', node: 'other' }], { ports: PORTS })]);
  await rig.sync();
  const reported = (await rig.dataplane.dump(rig.table)).filter((line) => line.includes(' retry '));
  t.same(reported, [
    'IPv4 frontend 10.96.0.11:53/UDP retry off',
    'IPv4 frontend 10.96.0.11:80/TCP retry 5s',
    'IPv4 frontend nodeport:30081/TCP retry 5s',
  ]);
  t.same(await rig.difference(), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart');
  asked({ connectRetry: 1 });
  await rig.sync();
  rig.now += 1000;
  await rig.sync();
  t.same(timeouts(rig), [TCP, DNS]);
  const left = [...(rig.kernel.table('ip')?.chains.keys() ?? [])].filter((name) => name.includes('retry-tcp'));
  t.same(left, []);
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('one Service may have retry times on a node without', async (t) => {
  const rig = await started(undefined, NO_RETRIES);
  rig.commit([service('web', { clusterIPs: ['10.96.0.10'], connectRetry: 3 })]);
  await rig.sync();
  t.same(timeouts(rig), [TCP.replace('1-1-', '3-3-')]);
  t.same(await rig.difference(), []);
});
