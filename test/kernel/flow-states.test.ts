// In every state but the unanswered one flows of Services last as the sysctls say, by flows that real segments have led there (docs/when-endpoints-die.md).
// needs: nft, conntrack
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { eventually, Lab } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PROGRAM = projectFile('test/support/lab/states.py');
const CLIENT = 'pod-c';
const ENDPOINT = 'remote-a';
const PORT = 80;
const OPENED = ['S', '<SA', 'A'];

/**
 * By the client's port: what is sent until conntrack has the flow in this state, and the sysctl that says how long it lasts there. Of a simultaneous open Linux
 * (6.18) does not renew the time at the second SYN (nf_conntrack_tcp_packet): SYN_SENT2 is of the unanswered beginning, whose end other tests show.
 */
const FLOWS: Readonly<
  Record<number, { readonly state: string; readonly sysctl: string; readonly sent: readonly string[] }>
> = {
  41_002: { state: 'SYN_RECV', sysctl: 'syn_recv', sent: ['S', '<SA'] },
  41_003: { state: 'ESTABLISHED', sysctl: 'established', sent: OPENED },
  41_004: { state: 'FIN_WAIT', sysctl: 'fin_wait', sent: [...OPENED, 'FA'] },
  41_005: { state: 'CLOSE_WAIT', sysctl: 'close_wait', sent: [...OPENED, 'FA', '<A'] },
  41_006: { state: 'LAST_ACK', sysctl: 'last_ack', sent: [...OPENED, 'FA', '<A', '<FA'] },
  41_007: { state: 'TIME_WAIT', sysctl: 'time_wait', sent: [...OPENED, 'FA', '<A', '<FA', 'A'] },
  41_008: { state: 'CLOSE', sysctl: 'close', sent: [...OPENED, 'R'] },
  // What is not acknowledged, and what is repeated in vain.
  41_009: { state: 'ESTABLISHED', sysctl: 'unacknowledged', sent: [...OPENED, 'D'] },
  41_010: { state: 'ESTABLISHED', sysctl: 'max_retrans', sent: [...OPENED, 'D', 'D', 'D', 'D'] },
};
const SCRIPTS = JSON.stringify(Object.fromEntries(Object.entries(FLOWS).map(([port, { sent }]) => [port, sent])));

/** The first of them, each so far from the others and from what is built in that none is taken for another. */
const SYSCTLS = [
  'syn_recv',
  'established',
  'fin_wait',
  'close_wait',
  'last_ack',
  'time_wait',
  'close',
  'max_retrans',
  'unacknowledged',
];
const SPREAD = 1000;

async function setSysctls(lab: Lab, first: number): Promise<ReadonlyMap<string, number>> {
  // The longest has to be `established`, which the two below it shorten.
  const values = SYSCTLS.map(
    (name, index) => [name, name === 'established' ? first + 50 * SPREAD : first + index * SPREAD] as const,
  );
  for (const [name, value] of values)
    await lab.sysctl('node', `net/netfilter/nf_conntrack_tcp_timeout_${name}`, String(value));
  return new Map(values);
}

/** Has all the flows of a family led to their states. */
async function lead(t: Test, lab: Lab, view: FamilyView): Promise<void> {
  const child = lab.spawn(ENDPOINT, [
    'python3',
    '-B',
    PROGRAM,
    'endpoint',
    ADDRESSES[ENDPOINT][view.family],
    String(PORT),
    SCRIPTS,
  ]);
  t.teardown(() => {
    child.kill('SIGKILL');
  });
  await new Promise((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  await lab.output(CLIENT, [
    'python3',
    '-B',
    PROGRAM,
    'client',
    ADDRESSES[CLIENT][view.family],
    view.clusterIP(41),
    String(PORT),
    SCRIPTS,
  ]);
  child.kill('SIGKILL');
}

interface Flow {
  readonly state: string;
  readonly seconds: number;
}

/** By the client's port. */
async function flowsOf(lab: Lab, { family }: FamilyView): Promise<ReadonlyMap<number, Flow>> {
  const found = new Map<number, Flow>();
  for (const line of await lab.flows(family)) {
    const [, seconds, state, port] = /^tcp +6 (\d+) (\S+) src=\S+ dst=\S+ sport=(\d+) dport=80 /.exec(line) ?? [];
    if (seconds !== undefined && state !== undefined) found.set(Number(port), { state, seconds: Number(seconds) });
  }
  return found;
}

async function compare(t: Test, lab: Lab, sysctls: ReadonlyMap<string, number>, what: string): Promise<void> {
  for (const view of FAMILY_VIEWS) {
    await lab.output('node', ['conntrack', '-F']);
    await lead(t, lab, view);
    const flows = await eventually('all flows are in their states', async () => {
      const found = await flowsOf(lab, view);
      return Object.entries(FLOWS).every(([port, { state }]) => found.get(Number(port))?.state === state)
        ? found
        : null;
    });
    for (const [port, { state, sysctl }] of Object.entries(FLOWS)) {
      const [seconds, wanted] = [flows.get(Number(port))?.seconds ?? NaN, sysctls.get(sysctl) ?? NaN];
      // What has gone by since is less than half of the way to the next value.
      const isOf = seconds <= wanted && seconds > wanted - SPREAD / 2;
      t.ok(isOf, `${what}, ${view.family}: ${state} ${sysctl}: ${seconds} of ${wanted} s`);
    }
  }
}

/** What says for how long flows of Services are kept. */
async function given(lab: Lab): Promise<string> {
  if (labMode() === 'nftables') return await lab.ruleset();
  return await lab.output('node', ['python3', '-B', projectFile('test/support/lab/timeouts.py')]);
}

for (const flags of [[], ['--connect-retry=0']]) {
  t.test(`TCP flows have the sysctls' timeouts in each state: ${flags.join(' ')}`, async (t) => {
    const lab = await Lab.start(t);
    // The TCP of the pods knows nothing of these connections, and would reset them.
    for (const pod of [CLIENT, ENDPOINT])
      await lab.output(
        pod,
        ['nft', '-f', '-'],
        'table inet states { chain output { type filter hook output priority 0; tcp flags & rst == rst tcp window 0 drop; }; }',
      );
    // The kernel knows no sysctls of conntrack in a namespace before rules use it.
    await lab.output('node', ['nft', 'add table ip t; add chain ip t c { type nat hook output priority 0; }']);
    const before = await setSysctls(lab, 20_000);
    const conntrack = { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' };
    await Proxy.start(t, lab, {
      objects: dualStack('web', { number: 41, ports: [{ port: PORT }], endpoints: [ENDPOINT] }),
      config: { conntrack, nftables: { syncPeriod: '1s' } },
      flags,
    });
    t.equal((await given(lab)).includes('70000'), flags.length === 0, 'whether flows get timeouts of their own');
    await compare(t, lab, before, 'at the start');
    const after = await setSysctls(lab, 320_000);
    if (flags.length === 0)
      await eventually('other timeouts are given', async () => {
        const text = await given(lab);
        const isThere = (value: number): boolean => new RegExp(`\\b${value}\\b`).test(text);
        // The process may have looked while only some of them had been set.
        return ([...after.values()].every(isThere) && ![...before.values()].some(isThere)) || null;
      });
    await compare(t, lab, after, 'after sysctls have changed');
  });
}
