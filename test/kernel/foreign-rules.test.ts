// Rules of others in a packet's way: explain names the rule, and packets do what it says.
// needs: nft, iptables
import t from 'tap';
import { isForwarded, type ExplainedPacket } from '../../src/serve/explain-packet.js';
import { usually } from '../support/extent.js';
import { Lab } from '../support/lab/lab.js';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

interface Case {
  readonly name: string;
  /** For `nft -f -`, or the words of a program. */
  readonly rules: string | readonly (readonly string[])[];
  readonly to?: string;
  readonly from?: 'pod-b' | 'client' | 'node';
  /** What explain names; null: nothing. */
  readonly names: RegExp | null;
  /** Whether that is certain; a note otherwise. */
  readonly severity?: 'warning' | 'note';
  /** `elsewhere`: pod-c answers, which is no endpoint. */
  readonly lost: boolean | 'elsewhere';
}

const chain = (hook: string, rules: string, policy = 'accept', family = 'inet', type = 'filter'): string =>
  `table ${family} wall { chain f { type ${type} hook ${hook}; policy ${policy}; ${rules} }; }`;
const FORWARD = 'forward priority 10';
const NFT: readonly Case[] = [
  {
    name: 'after us, the endpoint',
    rules: chain(FORWARD, 'counter ip daddr 10.244.1.10 drop;'),
    names: /drop it: rule 1 of chain f of table inet wall, at hook forward, priority 10: /,
    lost: true,
  },
  { name: 'after us, another endpoint', rules: chain(FORWARD, 'ip daddr 10.244.1.99 drop;'), names: null, lost: false },
  {
    name: 'before us, the cluster IP',
    rules: chain('prerouting priority -300', 'ip daddr 10.96.0.41 tcp dport 80 drop;', 'accept', 'ip'),
    names: /rule 1 of chain f of table ip wall, at hook prerouting, priority -300/,
    lost: true,
  },
  {
    name: 'before us, the endpoint',
    rules: chain('prerouting priority -300', 'ip daddr 10.244.1.10 drop;'),
    names: null,
    lost: false,
  },
  {
    name: 'just after the translation',
    rules: chain('prerouting priority -50', 'ip daddr 10.244.1.10 tcp dport 8080 drop;'),
    names: /at hook prerouting, priority -50/,
    lost: true,
  },
  {
    name: 'refused, in a chain that is jumped to',
    rules:
      'table inet wall { chain g { tcp dport { 22, 8000-8100 } reject; }; chain f { type filter hook forward priority 0; ct state established,related accept; iifname "veth-b" jump g; }; }',
    names: /reject it: rule 1 of chain g of table inet wall/,
    lost: true,
  },
  {
    name: 'the policy',
    rules: chain(
      FORWARD,
      'ct state established,related accept; ip saddr { 192.168.0.0/16, 10.1.0.0/16 } accept;',
      'drop',
    ),
    names: /drop it: the policy of chain f of table inet wall/,
    lost: true,
  },
  {
    name: 'accepted before the policy',
    rules: chain(
      FORWARD,
      'ct state established,related accept; ip saddr { 192.168.0.0/16, 10.244.0.0/16 } accept;',
      'drop',
    ),
    names: null,
    lost: false,
  },
  {
    name: 'translated connections are accepted',
    rules: chain(FORWARD, 'ct state established,related accept; ct status dnat accept;', 'drop'),
    names: null,
    lost: false,
  },
  {
    name: 'a verdict map',
    rules: chain(FORWARD, 'ip daddr vmap { 10.244.1.10 : drop, 10.244.1.11 : accept };'),
    names: /drop it: rule 1 of chain f/,
    lost: true,
  },
  {
    name: 'what cannot be evaluated',
    rules: chain(FORWARD, 'limit rate 1/hour accept; drop;'),
    names: /may drop it, not all of them can be evaluated: rule 2 of chain f/,
    severity: 'note',
    lost: true,
  },
  {
    name: 'sent by the node',
    rules: chain('output priority 0', 'ip daddr 10.244.1.10 reject;'),
    from: 'node',
    names: /reject it: rule 1 of chain f of table inet wall, at hook output/,
    lost: true,
  },
  {
    name: 'the answers of an endpoint',
    rules: chain(FORWARD, 'ip saddr 10.244.1.10 tcp sport 8080 drop;'),
    names: /drop its answers: rule 1 of chain f of table inet wall, at hook forward, priority 10: /,
    lost: true,
  },
  {
    name: 'answers by the policy',
    rules: chain(FORWARD, 'ip daddr 10.244.1.10 accept;', 'drop'),
    names: /drop its answers: the policy of chain f of table inet wall/,
    lost: true,
  },
  {
    name: 'answers to the node',
    rules: chain('input priority 0', 'ip saddr 10.244.1.10 ct state established drop;'),
    from: 'node',
    names: /drop its answers: rule 1 of chain f of table inet wall, at hook input/,
    lost: true,
  },
  {
    name: 'the answers of another port',
    rules: chain(FORWARD, 'ip saddr 10.244.1.10 tcp sport 8081 drop;'),
    names: null,
    lost: false,
  },
  {
    name: 'answers that come from the Service again',
    rules: chain('postrouting priority 200', 'ip saddr 10.96.0.41 drop;'),
    names: /drop its answers: rule 1 of chain f of table inet wall, at hook postrouting/,
    lost: true,
  },
  {
    name: 'at the interface of the client',
    rules: chain('ingress device "veth-b" priority 0', 'ip daddr 10.96.0.41 tcp dport 80 drop;', 'accept', 'netdev'),
    names: /drop it: rule 1 of chain f of table netdev wall, at hook ingress, priority 0/,
    lost: true,
  },
  {
    name: 'at the interface of the client, in a table of both families',
    rules: chain('ingress device "veth-b" priority 0', 'tcp dport 80 drop;'),
    names: /drop it: rule 1 of chain f of table inet wall, at hook ingress, priority 0/,
    lost: true,
  },
  {
    name: 'at the interface of the client, the endpoint',
    rules: chain('ingress device "veth-b" priority 0', 'ip daddr 10.244.1.10 drop;', 'accept', 'netdev'),
    names: null,
    lost: false,
  },
  {
    name: 'at the interface of another client',
    rules: chain('ingress device "veth-a" priority 0', 'ip daddr 10.96.0.41 drop;', 'accept', 'netdev'),
    names: null,
    lost: false,
  },
  {
    name: 'at some interface of the endpoint',
    rules: chain('egress device "veth-a" priority 0', 'ip daddr 10.244.1.10 tcp dport 8080 drop;', 'accept', 'netdev'),
    names: /may drop it, not all of them can be evaluated: rule 1 of chain f of table netdev wall, at hook egress/,
    severity: 'note',
    lost: true,
  },
  {
    name: 'answers at the interface of the client',
    rules: chain('egress device "veth-b" priority 0', 'ip saddr 10.96.0.41 tcp sport 80 drop;', 'accept', 'netdev'),
    names: /drop its answers: rule 1 of chain f of table netdev wall, at hook egress/,
    lost: true,
  },
  {
    name: 'the other family',
    rules: chain(FORWARD, 'ip6 daddr fd00:244:1::a drop;'),
    to: '[fd00:10:96::41]:80',
    names: /drop it: rule 1 of chain f/,
    lost: true,
  },
  { name: 'the other family alone', rules: chain(FORWARD, 'ip6 daddr fd00:244:1::a drop;'), names: null, lost: false },
];
const iptables = (program: string, ...rules: readonly string[]): Case['rules'] =>
  rules.map((rule) => [program, '-w', ...rule.split(' ')]);
const IPTABLES: readonly Case[] = ['iptables-nft', 'iptables-legacy'].flatMap((program) => {
  const table = program === 'iptables-nft' ? 'table ip filter' : 'legacy iptables table filter';
  const cases = [
    {
      name: `${program}: an endpoint`,
      rules: iptables(
        program,
        '-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
        '-A FORWARD -d 10.244.1.10/32 -p tcp -m tcp --dport 8080 -m comment --comment wall -j DROP',
      ),
      names: new RegExp(`drop it: rule [0-9] of chain FORWARD of ${table}, at hook forward`),
      lost: true,
    },
    {
      name: `${program}: in a chain`,
      rules: iptables(program, '-N WALL', '-A WALL -s 10.244.1.11/32 -j REJECT', '-A FORWARD -i veth-b -j WALL'),
      names: new RegExp(`reject it: rule 1 of chain WALL of ${table}`),
      lost: true,
    },
    {
      name: `${program}: before us, in table raw`,
      rules: iptables(program, '-t raw -A PREROUTING -d 10.96.0.41/32 -j DROP'),
      names: new RegExp(
        `drop it: rule [0-9] of chain PREROUTING of ${table.replace('filter', 'raw')}, at hook prerouting, priority -300`,
      ),
      lost: true,
    },
    {
      name: `${program}: after us, in table security`,
      rules: iptables(program, '-t security -A FORWARD -d 10.244.1.10/32 -j DROP'),
      names: new RegExp(
        `drop it: rule [0-9] of chain FORWARD of ${table.replace('filter', 'security')}, at hook forward, priority 1?50`,
      ),
      lost: true,
    },
    {
      name: `${program}: the policy`,
      rules: iptables(program, '-P FORWARD DROP'),
      names: new RegExp(`drop it: the policy of chain FORWARD of ${table}`),
      lost: true,
    },
    {
      name: `${program}: answers`,
      rules: iptables(program, '-I FORWARD -s 10.244.1.10/32 -p tcp -m tcp --sport 8080 -j DROP'),
      names: new RegExp(`drop its answers: rule [0-9] of chain FORWARD of ${table}, at hook forward`),
      lost: true,
    },
    {
      name: `${program}: admitted before the policy`,
      rules: iptables(
        program,
        '-P FORWARD DROP',
        '-A FORWARD -s 10.244.0.0/16 -j ACCEPT',
        '-A FORWARD -d 10.244.0.0/16 -j ACCEPT',
      ),
      names: null,
      lost: false,
    },
  ];
  // The rules of both flavours are evaluated alike; what reads them differs.
  return program === 'iptables-nft' ? cases : usually(cases.slice(0, 1), cases);
});

const OBJECTS = dualStack('web', {
  number: 41,
  ports: [{ name: 'http', port: 80, targetPort: 8080 }],
  endpoints: ['pod-a'],
});
const SENDERS = { 'pod-b': '%veth-b', node: 'node' } as const;

/** Rules that translate the packet, keep it from being tracked, or take it for a program. */
const dnat = (
  priority: number,
  rule = 'ip daddr 10.96.0.41 tcp dport 80 dnat to 10.244.1.12:8080;',
  family = 'ip',
): string => chain(`prerouting priority ${priority}`, rule, 'accept', family, 'nat');
const TO_POD_C = '-p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.1.12:8080';
const EFFECTS: readonly Case[] = [
  {
    name: 'not tracked',
    rules: chain('prerouting priority -300', 'ip daddr 10.96.0.41 tcp dport 80 notrack;', 'accept', 'ip'),
    names:
      /exempt it from tracking, so that ours do not translate: rule 1 of chain f of table ip wall, at hook prerouting, priority -300/,
    lost: true,
  },
  {
    name: 'not tracked, IPv6',
    rules: chain('prerouting priority -300', 'ip6 daddr fd00:10:96::41 notrack;'),
    to: '[fd00:10:96::41]:80',
    names: /exempt it from tracking, so that ours do not translate: rule 1 of chain f of table inet wall/,
    lost: true,
  },
  {
    name: 'too late not to be tracked',
    rules: chain('prerouting priority -150', 'ip daddr 10.96.0.41 notrack;'),
    names: null,
    lost: false,
  },
  {
    name: 'answers that are not tracked',
    rules: chain('prerouting priority -300', 'ip saddr 10.244.1.10 tcp sport 8080 notrack;', 'accept', 'ip'),
    names: /exempt its answers from tracking, .*: rule 1 of chain f of table ip wall/,
    lost: true,
  },
  {
    name: 'of the node, not tracked',
    rules: chain('output priority -300', 'ip daddr 10.96.0.41 tcp dport 80 notrack;', 'accept', 'ip'),
    from: 'node',
    names: /exempt it from tracking, so that ours do not translate: rule 1 of chain f of table ip wall, at hook output/,
    lost: true,
  },
  {
    name: 'translated before ours',
    rules: dnat(-110),
    names: /translate it before ours do: rule 1 of chain f of table ip wall, at hook prerouting, priority -110/,
    lost: 'elsewhere',
  },
  {
    name: 'translated before ours, IPv6',
    rules: dnat(-110, 'ip6 daddr fd00:10:96::41 tcp dport 80 dnat to [fd00:244:1::c]:8080;', 'ip6'),
    to: '[fd00:10:96::41]:80',
    names: /translate it before ours do: rule 1 of chain f of table ip6 wall/,
    lost: 'elsewhere',
  },
  {
    name: 'of the node, translated before ours',
    rules: dnat(-110).replace('prerouting', 'output'),
    from: 'node',
    names: /translate it before ours do: rule 1 of chain f of table ip wall, at hook output/,
    lost: 'elsewhere',
  },
  { name: 'translated after ours', rules: dnat(-90), names: null, lost: false },
  {
    name: 'translated at our priority by a chain that was made after ours',
    rules: dnat(-100),
    names: /translate it before ours do: rule 1 of chain f of table ip wall, at hook prerouting, priority -100/,
    lost: 'elsewhere',
  },
  {
    name: 'redirected to a port of the node',
    rules: dnat(-110, 'ip daddr 10.96.0.41 tcp dport 80 redirect to :8099;'),
    names: /translate it before ours do: rule 1 of chain f of table ip wall/,
    lost: true,
  },
  {
    name: 'translated if it is to the node itself',
    rules: dnat(-110, 'fib daddr type local tcp dport 80 dnat to 10.244.1.12:8080;'),
    names: null,
    lost: false,
  },
  {
    name: 'iptables-nft: not tracked',
    rules: iptables('iptables-nft', '-t raw -A PREROUTING -d 10.96.0.41/32 -p tcp -m tcp --dport 80 -j NOTRACK'),
    names: /exempt it from tracking, so that ours do not translate: rule [12] of chain PREROUTING of table ip raw/,
    lost: true,
  },
  {
    name: 'iptables-nft: a host port of another port',
    rules: iptables(
      'iptables-nft',
      '-t nat -N CNI-DN',
      `-t nat -A CNI-DN ${TO_POD_C}`,
      '-t nat -A PREROUTING -p tcp -m multiport --dports 81,82 -j CNI-DN',
      '-t nat -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-DN',
    ),
    names: null,
    lost: false,
  },
  {
    name: 'iptables-nft: translated in a chain',
    rules: iptables(
      'iptables-nft',
      '-t nat -N CNI-DN',
      `-t nat -A CNI-DN ${TO_POD_C}`,
      '-t nat -A PREROUTING -p tcp -m multiport --dports 79:80,443 -j CNI-DN',
    ),
    names: /translate it before ours do: rule 1 of chain CNI-DN of table ip nat/,
    lost: 'elsewhere',
  },
  {
    name: 'iptables-legacy: not tracked',
    rules: iptables(
      'iptables-legacy',
      '-t raw -A PREROUTING -d 10.96.0.41/32 -p tcp -m tcp --dport 80 -j CT --notrack',
    ),
    names:
      /exempt it from tracking, so that ours do not translate: rule 1 of chain PREROUTING of legacy iptables table raw/,
    lost: true,
  },
  {
    name: 'iptables-nft: given to a program',
    rules: iptables(
      'iptables-nft',
      '-t mangle -A PREROUTING -d 10.96.0.41/32 -p tcp -m tcp --dport 80 -j TPROXY --on-port 8099 --tproxy-mark 0x1/0x1',
    ),
    names:
      /give it to a program on this node, if one listens \(tproxy\): rule 1 of chain PREROUTING of table ip mangle/,
    lost: true,
  },
];
/** In the table that mode iptables has its rules in, the order of rules decides. */
const SHARED: readonly Case[] = [
  {
    name: 'translated before the jump to ours',
    rules: iptables('iptables-nft', `-t nat -I PREROUTING -d 10.96.0.41/32 ${TO_POD_C}`),
    names: /translate it before ours do: rule 1 of chain PREROUTING of table ip nat/,
    lost: 'elsewhere',
  },
  {
    name: 'translated after the jump to ours',
    rules: iptables('iptables-nft', `-t nat -A PREROUTING -d 10.96.0.41/32 ${TO_POD_C}`),
    names: null,
    lost: false,
  },
  ...EFFECTS.filter(({ name }) =>
    ['not tracked', 'translated before ours', 'iptables-nft: not tracked'].includes(name),
  ),
];

const ACCEPTED: Case = {
  name: 'answers behind the chain of ours that accepts them',
  rules: iptables('iptables-nft', '-A FORWARD -s 10.244.1.10/32 -j DROP'),
  names: null,
  lost: false,
};
const OF_NFT = IPTABLES.filter(({ name }) => name.startsWith('iptables-nft'));

const legacy = (...rules: readonly string[]): Case['rules'] => iptables('iptables-legacy', ...rules);
/** The node has the Service's address: packets come in there, and ipvs sends them out to endpoints. Answers are forwarded. */
const IPVS: readonly Case[] = [
  {
    name: 'on the way in, the Service',
    rules: legacy('-A INPUT -d 10.96.0.41/32 -p tcp -m tcp --dport 80 -j DROP'),
    names: /drop it: rule [0-9]+ of chain INPUT of legacy iptables table filter, at hook input/,
    lost: true,
  },
  {
    name: 'on the way in, the endpoint',
    rules: legacy('-A INPUT -d 10.244.1.10/32 -j DROP'),
    names: null,
    lost: false,
  },
  {
    name: 'sent out to the endpoint',
    rules: legacy('-A OUTPUT -d 10.244.1.10/32 -p tcp -m tcp --dport 8080 -j DROP'),
    names: /drop it: rule [0-9]+ of chain OUTPUT of legacy iptables table filter, at hook output/,
    lost: true,
  },
  {
    name: 'forwarded, which it is not',
    rules: legacy('-I FORWARD -d 10.244.1.10/32 -j DROP'),
    names: null,
    lost: false,
  },
  {
    name: 'on the way out, the endpoint',
    rules: legacy('-t mangle -A POSTROUTING -d 10.244.1.10/32 -p tcp -m tcp --dport 8080 -j DROP'),
    names: /drop it: rule [0-9]+ of chain POSTROUTING of legacy iptables table mangle, at hook postrouting/,
    lost: true,
  },
  {
    name: 'translated by rules, which it is not',
    rules: legacy('-A OUTPUT -d 10.244.1.10/32 -m conntrack --ctstate DNAT -j DROP'),
    names: null,
    lost: false,
  },
  {
    name: 'answers, forwarded',
    rules: legacy('-I FORWARD -s 10.244.1.10/32 -p tcp -m tcp --sport 8080 -j DROP'),
    names: /drop its answers: rule [0-9]+ of chain FORWARD of legacy iptables table filter, at hook forward/,
    lost: true,
  },
  {
    name: 'answers on the way out come from the Service',
    rules: legacy('-t mangle -A POSTROUTING -s 10.96.0.41/32 -j DROP'),
    names: /drop its answers: rule [0-9]+ of chain POSTROUTING of legacy iptables table mangle/,
    lost: true,
  },
  {
    name: 'answers on the way out do not come from the endpoint',
    rules: legacy('-t mangle -A POSTROUTING -s 10.244.1.10/32 -p tcp -m tcp --sport 8080 -j DROP'),
    names: null,
    lost: false,
  },
  {
    name: 'of the node, before ipvs',
    rules: legacy('-t raw -A OUTPUT -d 10.96.0.41/32 -j DROP'),
    from: 'node',
    names: /drop it: rule [0-9]+ of chain OUTPUT of legacy iptables table raw, at hook output/,
    lost: true,
  },
  {
    name: 'of the node, after ipvs, the Service',
    rules: legacy('-A OUTPUT -d 10.96.0.41/32 -j DROP'),
    from: 'node',
    names: null,
    lost: false,
  },
  {
    name: 'of the node, before ipvs, the endpoint: it is sent out again',
    rules: legacy('-t raw -A OUTPUT -d 10.244.1.10/32 -p tcp -m tcp --dport 8080 -j DROP'),
    from: 'node',
    names: /drop it: rule [0-9]+ of chain OUTPUT of legacy iptables table raw, at hook output/,
    lost: true,
  },
  {
    name: 'answers to the node',
    rules: legacy('-A INPUT -s 10.244.1.10/32 -p tcp -m tcp --sport 8080 -j DROP'),
    from: 'node',
    names: /drop its answers: rule [0-9]+ of chain INPUT of legacy iptables table filter, at hook input/,
    lost: true,
  },
];

for (const [mode, cases] of [
  ['ipvs-legacy', IPVS],
  ['nftables', [...NFT, ...IPTABLES, ...EFFECTS]],
  ['iptables-nft', [...NFT.slice(0, 1), ...SHARED, ACCEPTED, ...usually(OF_NFT.slice(0, 1), OF_NFT)]],
] as const) {
  if ((process.env[MODE_VARIABLE] === 'ipvs-legacy') !== (mode === 'ipvs-legacy')) continue;
  t.test(`foreign rules that drop Service traffic are named in mode ${mode}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a', 'pod-c'], [[8080, 'TCP']]);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode });
    for (const each of cases)
      await t.test(each.name, async (t) => {
        const { rules, names, severity = 'warning', lost, to = '10.96.0.41:80', from = 'pod-b' } = each;
        await add(lab, rules);
        const own = to.startsWith('[') ? 'fd00:244:1::b' : '10.244.1.11';
        const sender = from === 'node' ? SENDERS.node : `${own}${SENDERS['pod-b']}`;
        const explained: ExplainedPacket = await proxy.explain(sender, to);
        const found = explained.observations.filter(({ kind }) => kind === 'foreign-rules');
        if (names === null) t.same(found, []);
        else t.match(found, [{ severity, text: names, remedy: /^see (?:nft -a list chain|iptables-legacy) / }]);
        t.equal(found.length, names === null ? 0 : 1);
        const isClear = names === null || severity === 'note';
        t.equal(isForwarded(explained), isClear, 'what is certain is in the way: the exit status');
        const answer = await lab.request({ from, to, timeoutMs: 1000 });
        const by = 'at' in answer ? answer.name : null;
        t.equal(by, lost === 'elsewhere' ? 'pod-c' : lost ? null : 'pod-a', 'packets');
        await remove(lab, rules);
        t.match(await lab.request({ from, to }), { at: /./ }, 'packets, without the rules');
      });
  });
}

async function add(lab: Lab, rules: Case['rules']): Promise<void> {
  if (typeof rules === 'string') await lab.output('node', ['nft', '-f', '-'], rules);
  else for (const command of rules) await lab.output('node', command);
}

async function remove(lab: Lab, rules: Case['rules']): Promise<void> {
  if (typeof rules === 'string') {
    const [, family = '', table = ''] = /^table (\S+) (\S+)/.exec(rules) ?? [];
    await lab.output('node', ['nft', 'delete', 'table', family, table]);
    return;
  }
  for (const command of rules.toReversed()) for (const undone of undoing(command)) await lab.output('node', undone);
}

/** What takes a command of iptables back. */
function undoing(command: readonly string[]): readonly (readonly string[])[] {
  const replaced = (...words: readonly string[]): readonly string[] =>
    command.map((word) => (word === words[0] ? (words[1] ?? '') : word));
  if (command.includes('-N')) return [replaced('-N', '-F'), replaced('-N', '-X')];
  if (command.includes('-P')) return [replaced('DROP', 'ACCEPT')];
  return [command.includes('-I') ? replaced('-I', '-D') : replaced('-A', '-D')];
}

const inNftables = process.env[MODE_VARIABLE] === undefined ? {} : { skip: 'in mode nftables' };

t.test('status names a foreign chain that drops all forwarded packets', inNftables, async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: 'nftables' });
  await lab.output('node', ['nft', '-f', '-'], chain(FORWARD, 'ct state established,related accept;', 'drop'));
  const { healthy, observations } = await proxy.status();
  t.equal(healthy, true);
  t.match(observations, [
    {
      kind: 'foreign-rules',
      severity: 'warning',
      text: /drop every packet that this node forwards: the policy of chain f/,
    },
  ]);
});

t.test('status names the family of which a foreign chain drops all packets', inNftables, async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: 'nftables' });
  const rules = chain(FORWARD, 'ip daddr 10.244.0.0/16 accept; ip saddr 10.244.0.0/16 accept;', 'drop');
  await lab.output('node', ['nft', '-f', '-'], rules);
  const { observations } = await proxy.status();
  t.match(observations, [{ text: /drop every IPv6 packet that this node forwards: the policy of chain f/ }]);
});
