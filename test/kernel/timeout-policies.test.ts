// Timeout policies by which unanswered attempts are balanced anew in mode iptables: what they hold, and how they come and go (docs/when-endpoints-die.md).
// needs: iptables, conntrack
import t from 'tap';
import { TCP_STATES, UDP_STATES } from '../../src/base/conntrack-timeouts.js';
import { usually } from '../support/extent.js';
import { projectFile } from '../support/lab/agent.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { FAMILY_VIEWS } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { CONFIG, OBJECTS } from './retry-services.js';

const MODES = ['iptables-nft', 'iptables-legacy'] as const satisfies readonly LabMode[];
const NAMES = ['KT01', 'KT03', 'KU04', 'KU05', 'Kt01', 'Kt03', 'Ku04', 'Ku05'];

/** Policies by name, each with its family, protocol and seconds. */
async function policies(lab: Lab): Promise<ReadonlyMap<string, readonly string[]>> {
  const listed = await lab.output('node', ['python3', '-B', projectFile('test/support/lab/timeouts.py')]);
  const rows = listed.split('\n').filter((line) => line !== '');
  return new Map(rows.map((line) => line.split(' ')).map(([name = '', ...rest]) => [name, rest]));
}

/** Rules of table raw in both families, each with the packets that it counted; without those of the laboratory's own Service, whose port changes. */
async function raw(lab: Lab, flavor: string): Promise<readonly string[]> {
  const programs = [`iptables-${flavor}-save`, `ip6tables-${flavor}-save`];
  const listed = await Promise.all(programs.map((program) => lab.output('node', [program, '-c', '-t', 'raw'])));
  return listed.flatMap((text) =>
    text.split('\n').filter((line) => line.startsWith('[') && !line.includes('--dport 2000')),
  );
}

const SYSCTLS: Readonly<Record<string, string>> = {
  retrans: 'tcp_timeout_max_retrans',
  unack: 'tcp_timeout_unacknowledged',
  unreplied: 'udp_timeout',
  replied: 'udp_timeout_stream',
};

/** What a policy has to hold by the node's sysctls; simultaneous opens have none. */
async function called(lab: Lab, name: string): Promise<readonly string[]> {
  const [, letter = '', unanswered = ''] = /^K(.)(\d+)$/.exec(name) ?? [];
  const isTcp = letter.toLowerCase() === 't';
  const states: readonly string[] = isTcp ? TCP_STATES : UDP_STATES;
  const seconds = await Promise.all(
    states.map(async (state, place) => {
      if (place === 0) return String(Number(unanswered));
      if (state === 'syn_sent2') return '120';
      return await lab.sysctl('node', `net/netfilter/nf_conntrack_${SYSCTLS[state] ?? `tcp_timeout_${state}`}`);
    }),
  );
  return [letter === letter.toLowerCase() ? 'IPv4' : 'IPv6', isTcp ? 'tcp' : 'udp', ...seconds];
}

for (const mode of usually(MODES.slice(0, 1), MODES)) {
  const flavor = mode.slice('iptables-'.length);
  t.test(`timeout policies match the rules that name them, ${mode}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['remote-a'], [[80, 'TCP']]);
    const proxy = await Proxy.start(t, lab, {
      mode,
      objects: OBJECTS,
      config: { ...CONFIG, iptables: { syncPeriod: '1s' } },
    });
    t.same([...(await policies(lab)).keys()].sort(), NAMES);
    for (const [name, held] of await policies(lab)) t.same(held, await called(lab, name), name);
    t.same(
      (await proxy.status()).families
        .flatMap(({ limitations }) => limitations)
        .filter((text) => !/affinity|removed endpoint/.test(text)),
      [],
    );
    for (const view of FAMILY_VIEWS) await lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });

    const before = await raw(lab, flavor);
    t.ok(
      before.some((rule) => /^\[1:\d+\] .*--dport 80 -j CT --timeout Kt01$/.test(rule)),
      'a connection met its rule',
    );
    await proxy.stop('SIGTERM');
    proxy.launch();
    await proxy.ready();
    await proxy.consistent();
    t.same(
      (await raw(lab, flavor)).filter((rule) => / CT /.test(rule)),
      before.filter((rule) => / CT /.test(rule)),
      'a restart writes no rule: their counts go on',
    );

    await lab.sysctl('node', 'net/netfilter/nf_conntrack_tcp_timeout_established', '50403');
    await eventually(
      'policies follow the sysctl',
      async () =>
        [...(await policies(lab))].every(
          ([, [, protocol, ...seconds]]) => protocol === 'udp' || seconds[2] === '50403',
        ) || null,
    );
    t.same(
      (await raw(lab, flavor)).filter((rule) => / CT /.test(rule)),
      before.filter((rule) => / CT /.test(rule)),
      'and no rule changes for it',
    );
    for (const [name, held] of await policies(lab)) t.same(held, await called(lab, name), name);

    for (const program of ['iptables', 'ip6tables'])
      await lab.output('node', [`${program}-${flavor}`, '-t', 'raw', '-F']);
    await eventually(
      'a flush is repaired',
      async () =>
        (await raw(lab, flavor)).filter((rule) => / CT /.test(rule)).length ===
          before.filter((rule) => / CT /.test(rule)).length || null,
    );
    await proxy.consistent();

    await proxy.stop('SIGTERM');
    const cleanup = await proxy.run(null, ['--cleanup']);
    t.equal(cleanup.status, 0, cleanup.stderr);
    t.same([...(await policies(lab)).keys()], [], '--cleanup leaves no policy');
    t.same(await raw(lab, flavor), []);
  });
}

t.test('a change of the mode removes timeout policies with their rules', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { mode: 'iptables-nft', objects: OBJECTS });
  t.same([...(await policies(lab)).keys()].sort(), NAMES);
  await proxy.useMode('nftables');
  await eventually('they are gone', async () => (await policies(lab)).size === 0 || null);
  t.same(await raw(lab, 'nft'), []);
});
