// Objects that have unanswered attempts balanced anew: what they hold, and that processes take them over (docs/when-endpoints-die.md).
// needs: nft, conntrack
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import t from 'tap';
import { BUILT_IN_TIMEOUTS } from '../../src/base/conntrack-timeouts.js';
import { projectFile } from '../support/lab/agent.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { CONFIG as LEFT_ALONE, OBJECTS as RETRIED, PORTS } from './retry-services.js';
import { silence } from './silence.js';

/** Looks at the sysctls often. */
const CONFIG = { ...LEFT_ALONE, nftables: { syncPeriod: '1s' } };
const CHANGED = {
  tcp_timeout_syn_recv: 1302,
  tcp_timeout_established: 50_403,
  tcp_timeout_fin_wait: 1504,
  tcp_timeout_last_ack: 1706,
  tcp_timeout_max_retrans: 2009,
  udp_timeout: 2211,
  udp_timeout_stream: 2312,
} as const;

const OBJECTS = [
  ...RETRIED,
  ...dualStack('plain', {
    number: 43,
    ports: PORTS,
    endpoints: ['remote-a'],
    annotations: { 'pointsman.dev/connect-retry': 'off', 'pointsman.dev/udp-retry': 'off' },
  }),
];
/** Protocol, and seconds that an unanswered attempt lasts. */
const CLASSES = [
  ['tcp', 1],
  ['tcp', 3],
  ['udp', 4],
  ['udp', 5],
] as const;

async function setSysctls(lab: Lab, values: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, value] of Object.entries(values))
    await lab.sysctl('node', `net/netfilter/nf_conntrack_${name}`, String(value));
}

async function laboratory(t: Test): Promise<Lab> {
  const lab = await Lab.start(t);
  await lab.serveAll(
    ['remote-a'],
    [
      [80, 'TCP'],
      [53, 'UDP'],
    ],
  );
  // The kernel knows no sysctls of conntrack in a namespace before rules use it.
  await lab.output('node', ['nft', 'add table ip t; add chain ip t c { type nat hook output priority 0; }']);
  return lab;
}

/** How long conntrack keeps flows of a protocol in each state, by the sysctls of the node and the names that policies have for states. */
async function inForce(lab: Lab, protocol: 'tcp' | 'udp'): Promise<Readonly<Record<string, number>>> {
  const files = `/proc/sys/net/netfilter/nf_conntrack_${protocol}_timeout*`;
  const listed = await lab.output('node', ['sh', '-c', `grep . ${files}`]);
  const names = { udp_timeout: 'unreplied', udp_timeout_stream: 'replied' } as Readonly<Record<string, string>>;
  const others = { max_retrans: 'retrans', unacknowledged: 'unack' } as Readonly<Record<string, string>>;
  const states = [...listed.matchAll(/nf_conntrack_(\w+):(\d+)/g)].map(([, name = '', seconds]) => {
    const state = name.replace('tcp_timeout_', '');
    return [names[name] ?? others[state] ?? state, Number(seconds)] as const;
  });
  return Object.fromEntries(states);
}

interface Policy {
  readonly family: string;
  readonly name: string;
  readonly protocol: string;
  readonly policy: Readonly<Record<string, number>>;
}

/** The objects as nft lists them, by name. */
async function policies(lab: Lab): Promise<readonly Policy[]> {
  const { nftables } = (await lab.rulesetJson()) as { readonly nftables: readonly Readonly<Record<string, Policy>>[] };
  return nftables.flatMap((each) => each['ct timeout'] ?? []);
}

/** Every object of both families has what the sysctls say in all states but the unanswered one. */
async function agree(t: Test, lab: Lab, what: string): Promise<void> {
  const all = await policies(lab);
  for (const family of ['ip', 'ip6'])
    for (const [protocol, seconds] of CLASSES) {
      const named = all.filter(
        (each) => each.family === family && each.name.startsWith(`connect-retry-${protocol}-${seconds}-`),
      );
      t.equal(named.length, 1, `${what}: one object for ${family} ${protocol} ${seconds}`);
      const sysctls = await inForce(lab, protocol);
      const unanswered = protocol === 'tcp' ? { syn_sent: seconds } : { unreplied: seconds };
      t.equal(Object.keys(sysctls).length, protocol === 'tcp' ? 10 : 2, 'all of the kernel’s sysctls are compared');
      // nft leaves out what is as the kernel has it built in. Simultaneous opens have no sysctl.
      const held = { ...BUILT_IN_TIMEOUTS[protocol], ...named[0]?.policy };
      const builtIn = protocol === 'tcp' ? { syn_sent2: BUILT_IN_TIMEOUTS.tcp.syn_sent2 } : {};
      t.same(held, { ...builtIn, ...sysctls, ...unanswered }, `${what}: ${family} ${protocol} ${seconds}`);
    }
  t.equal(all.length, 2 * CLASSES.length, `${what}: and no others`);
}

t.test("TCP flows beyond the attempt have the sysctls' timeouts, by the policies in the kernel", async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: CONFIG });
  await agree(t, lab, 'as they were');
  await setSysctls(lab, CHANGED);
  await eventually('the former objects are gone', async () => {
    const listed = await policies(lab);
    return (listed.length === 2 * CLASSES.length && listed.every(({ name }) => /-50403-|-2312$/.test(name))) || null;
  });
  await agree(t, lab, 'changed');
  await proxy.consistent();
});

/** For how long the flow of a client to a Service goes on, and how conntrack(8) prints it. */
async function datagrams(
  lab: Lab,
  view: FamilyView,
  number: number,
): Promise<{ seconds: number; line: string } | null> {
  const line = (await lab.flows(view.family)).find(
    (each) => each.startsWith('udp') && each.includes(`dst=${view.clusterIP(number)} `),
  );
  return line === undefined ? null : { seconds: Number(line.split(/\s+/)[2]), line };
}

t.test("UDP streams have the sysctls' timeouts, and all UDP flows of Services without retry times", async (t) => {
  const lab = await laboratory(t);
  await setSysctls(lab, CHANGED);
  await Proxy.start(t, lab, { objects: OBJECTS, config: CONFIG });
  const open = (view: FamilyView, number: number): ReturnType<Lab['open']> =>
    lab.open({ from: 'pod-c', to: endpoint(view.clusterIP(number), 53), protocol: 'UDP' });
  for (const view of FAMILY_VIEWS)
    for (const number of [41, 42, 43]) {
      const client = await open(view, number);
      const stream = await eventually('a stream', async () => {
        await client.exchange();
        const found = await datagrams(lab, view, number);
        return found?.line.includes('ASSURED') === true ? found : null;
      });
      t.ok(stream.seconds <= 2312 && stream.seconds > 2212, `${view.family} ${number}: stream: ${stream.seconds} s`);
      await client.close();
    }
  await lab.output('node', ['conntrack', '-F']);
  await silence(lab, 'remote-a');
  for (const view of FAMILY_VIEWS)
    for (const [number, least, most] of [
      [41, 0, 4],
      [42, 0, 5],
      [43, 2111, 2211],
    ] as const) {
      const client = await open(view, number);
      const unanswered = await eventually('an attempt', async () => {
        await client.send();
        return await datagrams(lab, view, number);
      });
      t.match(unanswered.line, /UNREPLIED/);
      t.ok(
        unanswered.seconds >= least && unanswered.seconds <= most,
        `${view.family} ${number}: ${unanswered.seconds} s`,
      );
      await client.close();
    }
});

/** The transactions of the node, each the changes that it made. */
class Monitor {
  private readonly received: (readonly string[])[] = [];
  private marks = 0;

  private constructor(private readonly lab: Lab) {}

  static async start(t: Test, lab: Lab): Promise<Monitor> {
    const monitor = new Monitor(lab);
    const child = lab.spawn('node', ['python3', '-B', projectFile('test/support/lab/transactions.py')]);
    t.teardown(() => {
      child.kill('SIGKILL');
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      monitor.received.push(JSON.parse(line) as readonly string[]);
    });
    await eventually('the monitor', () => Promise.resolve(monitor.received.length > 0 || null));
    return monitor;
  }

  /** All until now, without those that show that nothing is missing. */
  async transactions(): Promise<readonly (readonly string[])[]> {
    const mark = `mark${++this.marks}`;
    await this.lab.output('node', ['nft', `add table ip ${mark}`]);
    await eventually('the monitor hears', () =>
      Promise.resolve(this.received.some((changes) => changes.includes(`add table ip ${mark}`)) || null),
    );
    return this.received.filter((changes) => changes.some((change) => !change.startsWith('add table ip mark')));
  }
}

t.test('a restart keeps the timeout objects, and changed sysctls replace them with their rules', async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: CONFIG });
  await proxy.consistent();
  const before = await policies(lab);
  t.equal(before.length, 2 * CLASSES.length);

  await proxy.stop('SIGTERM');
  const monitor = await Monitor.start(t, lab);
  proxy.launch();
  await proxy.ready();
  await proxy.consistent();
  t.same(await monitor.transactions(), [], 'no operation');
  t.same(await policies(lab), before, 'the same objects');

  await proxy.stop('SIGKILL');
  await setSysctls(lab, CHANGED);
  proxy.launch();
  await proxy.ready();
  await proxy.consistent();
  await agree(t, lab, 'by the next process');
  const transactions = await monitor.transactions();
  for (const { family, name } of await policies(lab)) {
    const chain = `${family} kube-proxy connect-retry`;
    const adding = transactions.find((changes) => changes.includes(`add object ${family} kube-proxy ${name}`)) ?? [];
    const rules = adding.filter((change) => change.startsWith(`add rule ${chain}`) && change.endsWith(` uses ${name}`));
    t.equal(rules.length, 1, `${family} ${name} comes with its rule`);
    t.ok(
      adding.some((change) => change.startsWith(`delete rule ${chain}`)),
      'and in the place of the former',
    );
  }
  const other = /^(?:add|delete) (?:rule|object) ip6? kube-proxy connect-retry/;
  t.same(
    transactions.flat().filter((change) => !other.test(change)),
    [],
    'and nothing else changes',
  );

  await proxy.stop('SIGTERM');
  const cleanup = await proxy.run(null, ['--cleanup']);
  t.equal(cleanup.status, 0, cleanup.stderr);
  t.same(await policies(lab), [], '--cleanup leaves no object');
  t.notMatch(await lab.ruleset(), /kube-proxy|connect-retry/);
});
