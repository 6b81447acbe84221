// Attempts to endpoints that do not answer, while the cluster does not know it: docs/when-endpoints-die.md.
// needs: nft, conntrack
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { projectFile } from '../support/lab/agent.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { revive, silence } from './silence.js';
import { WAYS, web } from './ways.js';

/** Rules of both modes give the same timeouts; objects and policies of theirs have tests of their own. */
const MODE = labMode();
const ENDPOINTS = ['remote-a', 'remote-b', 'pod-a', 'pod-b'] as const;
/** Attempts by each way and family. That none of 64 goes to a quarter of the endpoints happens once in 10⁸ runs. */
const ATTEMPTS = 8;
/**
 * Each repetition is balanced anew. With one of four endpoints silent an attempt needs more than three once in 256, with two
 * of four more than four once in 32. That more than an eighth, or a quarter, of 64 do happens once in 10¹⁰ runs.
 */
const MOST_LATE = { 1: ATTEMPTS, 2: ATTEMPTS * 2 } as const;
/** A client sends its first packet again so many times, a second apart: that it always goes to a dead half happens once in 10⁹ runs. */
const SYNS = 40;
const GIVES_UP_MS = patience(90_000);

const WEB = web(ENDPOINTS);

t.test('connection attempts to silent endpoints are retried on others', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll([...ENDPOINTS], [[80, 'TCP']]);
  const healthy = dualStack('healthy', { number: 42, ports: [{ port: 80 }], endpoints: ['remote-a', 'pod-b'] });
  await Proxy.start(t, lab, { objects: [...WEB, ...healthy] });
  for (const { from } of WAYS) await lab.sysctl(from, 'net/ipv4/tcp_syn_linear_timeouts', String(SYNS));
  const deaths = [
    [1, 'remote-b'],
    [2, 'pod-a'],
  ] as const;
  for (const [silent, dead] of usually(deaths.slice(0, 1), deaths)) {
    await silence(lab, dead);
    const beside = FAMILY_VIEWS.flatMap((view) =>
      WAYS.flatMap(({ from }) =>
        Array.from({ length: ATTEMPTS }, () => lab.open({ from, to: endpoint(view.clusterIP(42), 80) })),
      ),
    );
    const opened = await Promise.allSettled(
      FAMILY_VIEWS.flatMap((view) =>
        WAYS.flatMap(({ from, to }) =>
          Array.from({ length: ATTEMPTS }, () => lab.open({ from, to: to(view), timeoutMs: GIVES_UP_MS })),
        ),
      ),
    );
    const connections = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    t.equal(connections.length, opened.length, `all connect while ${dead} is silent`);
    const repeats = await Promise.all(connections.map((connection) => connection.repeats()));
    // A client repeats its first packet each second: within k + 2 s for k silent endpoints.
    const late = repeats.filter((count) => count > silent + 2).length;
    t.ok(late <= MOST_LATE[silent], `${late} of ${repeats.length} took more than ${silent + 2} repetitions`);
    t.ok(repeats.some((count) => count > 0));
    const others = await Promise.all(beside);
    const ofOthers = await Promise.all(others.map((connection) => connection.repeats()));
    t.same(new Set(ofOthers), new Set([0]), 'no connection of a healthy Service is later');
    await Promise.all([...connections, ...others].map((connection) => connection.close()));
  }
});

/** Of the flows of a family that a client has through a Service, `state seconds` of the first one. */
async function timeoutOf(lab: Lab, { family }: FamilyView, port: number): Promise<string | null> {
  for (const line of await lab.flows(family)) {
    const [protocol, , seconds, ...rest] = line.split(/\s+/);
    if (!rest.join(' ').includes(` dport=${port} `)) continue;
    return protocol === 'tcp'
      ? `${rest[0] ?? ''} ${seconds ?? ''}`
      : `${line.includes('UNREPLIED') ? 'UNREPLIED' : 'REPLIED'} ${seconds ?? ''}`;
  }
  return null;
}

/** Seconds that a state of the node's flows lasts, each other than any default. */
const SYSCTLS: Readonly<Record<string, number>> = {
  tcp_timeout_syn_sent: 1201,
  tcp_timeout_syn_recv: 1302,
  tcp_timeout_established: 50_403,
  tcp_timeout_fin_wait: 1504,
  tcp_timeout_close_wait: 1605,
  tcp_timeout_last_ack: 1706,
  tcp_timeout_time_wait: 1807,
  tcp_timeout_close: 1908,
  tcp_timeout_max_retrans: 2009,
  tcp_timeout_unacknowledged: 2110,
  udp_timeout: 2211,
  udp_timeout_stream: 2312,
};

async function setSysctls(lab: Lab, values: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, value] of Object.entries(values))
    await lab.sysctl('node', `net/netfilter/nf_conntrack_${name}`, String(value));
}

/** What says for how long flows of Services are kept, as the mode's own tools list it. */
async function given(lab: Lab): Promise<string> {
  if (MODE === 'nftables') return await lab.ruleset();
  return await lab.output('node', ['python3', '-B', projectFile('test/support/lab/timeouts.py')]);
}

/** A connection that both sides end in order. */
const ORDERLY = `
import socket, sys
opened = socket.create_connection((sys.argv[1], 80))
opened.shutdown(socket.SHUT_WR)
while opened.recv(100): pass
`;

function ending(lab: Lab, view: FamilyView, state: string): Promise<string> {
  return eventually(`a flow in ${state}`, async () => {
    const found = await timeoutOf(lab, view, 80);
    return found?.startsWith(`${state} `) === true ? found : null;
  });
}

t.test("flows of retried Services have the sysctls' timeouts in all other states, also after changes", async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-a'], [[80, 'TCP']]);
  const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['remote-a'] });
  // The kernel knows no sysctls of conntrack in a namespace before rules use it.
  await lab.output('node', ['nft', 'add table ip t; add chain ip t c { type nat hook output priority 0; }']);
  await setSysctls(lab, SYSCTLS);
  const conntrack = { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' };
  const proxy = await Proxy.start(t, lab, { objects, config: { conntrack, nftables: { syncPeriod: '1s' } } });
  for (const view of FAMILY_VIEWS) {
    const connection = await lab.open({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });
    t.match(await connection.exchange(), { name: 'remote-a' });
    t.match(await timeoutOf(lab, view, 80), /^ESTABLISHED 50(?:40[0-3]|39\d)$/, view.family);
    await connection.close();
    t.match(await ending(lab, view, 'CLOSE'), /^CLOSE 19(?:0[0-8]|[0-8]\d)$/, view.family);
    await lab.output('node', ['conntrack', '-F']);
    await lab.output('pod-c', ['python3', '-c', ORDERLY, view.clusterIP(41)]);
    t.match(await ending(lab, view, 'TIME_WAIT'), /^TIME_WAIT 1(?:80[0-7]|7\d\d)$/, view.family);
  }
  await lab.output('node', ['conntrack', '-F']);
  const lasting = await Promise.all(
    FAMILY_VIEWS.map((view) => lab.open({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) })),
  );
  await setSysctls(lab, { tcp_timeout_established: 60_403 });
  await eventually('other timeouts are given', async () => ((await given(lab)).includes('60403') ? true : null));
  await eventually('and no former ones', async () => ((await given(lab)).includes('50403') ? null : true));
  await proxy.consistent();
  for (const [index, view] of FAMILY_VIEWS.entries()) {
    t.match(await lasting[index]?.exchange(), { name: 'remote-a' });
    t.match(
      await timeoutOf(lab, view, 80),
      /^ESTABLISHED 60(?:40[0-3]|39\d)$/,
      `${view.family}: a connection from before`,
    );
    await lasting[index]?.close();
  }
  for (const view of FAMILY_VIEWS) {
    await lab.output('node', ['conntrack', '-F']);
    const connection = await lab.open({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });
    t.match(await timeoutOf(lab, view, 80), /^ESTABLISHED 60(?:40[0-3]|39\d)$/, view.family);
    await connection.close();
  }
});

/** For how many seconds at most an attempt from a pod is waited for. */
async function waits(lab: Lab, to: string, view: FamilyView): Promise<number> {
  await lab.output('node', ['conntrack', '-F']);
  const asked = lab.request({ from: 'pod-c', to, timeoutMs: patience(3000) });
  const found = await eventually('an attempt', () => timeoutOf(lab, view, 80));
  await asked;
  const [, seconds] = /^SYN_SENT (\d+)$/.exec(found) ?? [];
  return Number(seconds);
}

for (const [flags, extent] of [
  [[], {}],
  [['--connect-retry=0', '--dns-retry=0'], inFull],
] as const) {
  t.test(`connection attempts to no Service keep their timeout: ${flags.join(' ')}`, extent, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['remote-a'], [[80, 'TCP']]);
    await silence(lab, 'remote-a');
    const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['remote-a'] });
    const proxy = await Proxy.start(t, lab, { objects, flags });
    for (const view of FAMILY_VIEWS) {
      const ofService = await waits(lab, endpoint(view.clusterIP(41), 80), view);
      t.ok(flags.length === 0 ? ofService <= 1 : ofService > 60, `${view.family}: of a Service`);
      t.ok((await waits(lab, endpoint(ADDRESSES['remote-a'][view.family], 80), view)) > 60, `${view.family}: of none`);
    }
    t.equal(/connect-retry-tcp|^Kt01/m.test(await given(lab)), flags.length === 0);
    // The plan that is asked for here knows no flags.
    if (flags.length === 0) await proxy.consistent();
  });
}

t.test('a resolver that asks again by the same socket gets an answer', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll([...ENDPOINTS], [[53, 'UDP']]);
  const port = { port: 53, protocol: 'UDP' as const, nodePort: 30053 };
  const objects = dualStack('dns', { type: 'NodePort', number: 41, ports: [port], endpoints: [...ENDPOINTS] });
  await Proxy.start(t, lab, { objects });
  await silence(lab, 'remote-b');
  const ways = [
    { from: 'pod-c', to: (view: FamilyView) => endpoint(view.clusterIP(41), 53) },
    { from: 'client', to: (view: FamilyView) => view.nodePort(30053) },
  ];
  const clients = FAMILY_VIEWS.flatMap((view) =>
    ways.flatMap(({ from, to }) => Array.from({ length: ATTEMPTS }, () => ({ from, to: to(view) }))),
  );
  const answered = await Promise.all(
    clients.map(async (traffic) => {
      const socket = await lab.open({ ...traffic, protocol: 'UDP' });
      // As the resolvers of glibc, Go and systemd: that is longer than the flow is kept.
      const answer = await eventually('an answer', async () => {
        const found = await socket.exchange({ timeoutMs: 5000 });
        return 'name' in found ? found : null;
      });
      await socket.close();
      return answer;
    }),
  );
  t.notOk(answered.some(({ name }) => name === 'remote-b'));
  t.equal(answered.length, clients.length);
});

const SLOW_ANSWERS_PROGRAM = ['python3', '-B', projectFile('test/support/lab/slow_answers.py')];

/** When answers come, in seconds after the query, and whether they reach the client. */
const SLOW_ANSWERS = [
  { delay: 2.2, arrives: true },
  { delay: 3, arrives: true },
  { delay: 3.9, arrives: true },
  { delay: 4.5, arrives: false },
] as const;
/** An answer of which a busy machine sent this much later than it should says nothing. */
const MOST_LATE_SECONDS = 0.07;

t.test('a slow answer to a DNS query reaches the client for 4 s, and a later one leaves a flow', async (t) => {
  const lab = await Lab.start(t);
  const objects = dualStack('dns', { number: 41, ports: [{ port: 53, protocol: 'UDP' }], endpoints: ['remote-a'] });
  await Proxy.start(t, lab, { objects });
  const sent = new Map<number, number>();
  for (const view of FAMILY_VIEWS) {
    const server = lab.spawn('remote-a', [...SLOW_ANSWERS_PROGRAM, 'resolve', view.address('remote-a')]);
    let [text, isReady] = ['', false];
    server.stdout.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (text + piece).split('\n');
      text = lines.pop() ?? '';
      isReady ||= lines.includes('ready');
      for (const line of lines.filter((each) => each !== 'ready')) sent.set(...(JSON.parse(line) as [number, number]));
    });
    t.teardown(() => server.kill());
    await eventually('a resolver', () => Promise.resolve(isReady || null));
  }
  let numbers = 0;
  /** Outcome of a query by each delay; only for answers that were sent in time. */
  const ask = async (view: FamilyView, from: string): Promise<ReadonlyMap<number, boolean>> => {
    const queries = SLOW_ANSWERS.map(({ delay }): [number, number] => [++numbers, delay]);
    const command = [...SLOW_ANSWERS_PROGRAM, 'ask', view.clusterIP(41), JSON.stringify(queries)];
    const answered = JSON.parse(await lab.output(from, command)) as readonly number[];
    return new Map(
      queries.flatMap(([number, delay]) =>
        (sent.get(number) ?? Infinity) - delay > MOST_LATE_SECONDS ? [] : [[delay, answered.includes(number)] as const],
      ),
    );
  };
  const cases = FAMILY_VIEWS.flatMap((view) => ['pod-c', 'node'].map((from) => ({ view, from })));
  await Promise.all(
    cases.map(async ({ view, from }) => {
      const found = new Map<number, boolean>();
      await eventually('all answers in time', async () => {
        for (const [delay, isAnswered] of await ask(view, from)) found.set(delay, isAnswered);
        return found.size === SLOW_ANSWERS.length || null;
      });
      for (const { delay, arrives } of SLOW_ANSWERS)
        t.equal(
          found.get(delay),
          arrives,
          `${view.family}: ${from} gets an answer after ${delay} s: ${String(arrives)}`,
        );
      // The command of docs/when-endpoints-die.md that lists late answers.
      const listing = ['conntrack', '-L', '-f', view.family.toLowerCase(), '-p', 'udp', '--orig-port-src', '53'];
      t.match(await lab.output('node', listing), ` src=${view.address('remote-a')} `, 'which shows that it was late');
    }),
  );
});

/** Packets that conntrack could not place. */
async function invalid(lab: Lab): Promise<number> {
  const listed = await lab.output('node', ['conntrack', '-S']);
  return [...listed.matchAll(/\binvalid=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

t.test('conntrack counts a SYN/ACK for a forgotten flow as invalid', async (t) => {
  const lab = await Lab.start(t);
  const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['remote-a'] });
  await Proxy.start(t, lab, { objects });
  await silence(lab, 'remote-a');
  // It sends its SYN after 0, 1 and 3 s: between 2 and 3 s there is no flow.
  await lab.sysctl('pod-c', 'net/ipv4/tcp_syn_linear_timeouts', '0');
  const server = lab.spawn('remote-a', [...SLOW_ANSWERS_PROGRAM, 'accept', '2.5']);
  t.teardown(() => server.kill());
  let printed = '';
  server.stdout.setEncoding('utf8').on('data', (piece: string) => (printed += piece));
  await eventually('an endpoint', () => Promise.resolve(printed.includes('ready') || null));
  const before = await invalid(lab);
  const [view] = FAMILY_VIEWS;
  const to = endpoint(view?.clusterIP(41) ?? '', 80);
  const attempt = lab.request({ from: 'pod-c', to, timeoutMs: 2900 });
  await eventually('a SYN/ACK', () => Promise.resolve(printed.includes('sent') || null));
  t.same(
    (await lab.flows()).filter((line) => line.includes(' dport=80 ')),
    [],
    'no flow is left',
  );
  await eventually('it is counted', async () => (await invalid(lab)) > before || null);
  t.match(await attempt, { error: 'timeout' });
});

const onlyNftables = MODE === 'nftables' ? {} : { skip: 'mode iptables remembers a client by its first packet' };

t.test('an affinity client goes to another endpoint when its own stops answering', onlyNftables, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll([...ENDPOINTS], [[80, 'TCP']]);
  const spec = { number: 41, ports: [{ port: 80 }], affinitySeconds: 600, endpoints: [...ENDPOINTS] };
  const proxy = await Proxy.start(t, lab, { objects: dualStack('web', spec) });
  await lab.sysctl('pod-c', 'net/ipv4/tcp_syn_linear_timeouts', String(SYNS));
  const where = async (view: FamilyView): Promise<string> => {
    const traffic = { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), timeoutMs: GIVES_UP_MS };
    const connection = await lab.open(traffic);
    const answer = await connection.exchange();
    await connection.close();
    if (!('name' in answer)) throw new Error(`no answer in ${view.family}: ${JSON.stringify(answer)}`);
    return answer.name;
  };
  for (const view of FAMILY_VIEWS) {
    const first = await where(view);
    for (let again = 0; again < 8; again++) t.equal(await where(view), first, 'it is remembered');
    await silence(lab, first);
    const second = await where(view);
    t.not(second, first, `${view.family}: another endpoint answers`);
    for (let again = 0; again < 8; again++) t.equal(await where(view), second, 'at which the client is remembered');
    await revive(lab, first);
    t.equal(await where(view), second, 'also when the former one answers again');
  }
  await proxy.consistent();
});
