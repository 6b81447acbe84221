import t from 'tap';
import { printTransaction } from '../../../src/dataplane/xtables/print.js';
import { loadAddon } from '../../../src/native/load.js';

t.test('diff prints iptables streams with one object a line, rules in order, without trials', (t) => {
  const text = (rule: string) => ({ type: 'text', text: rule }) as const;
  t.same(
    printTransaction(loadAddon().iptables, {
      family: 'IPv4',
      flavor: 'nft',
      operations: [
        {
          type: 'chain',
          table: 'nat',
          chain: 'KUBE-SVC-B',
          rules: [text('-j Z'), text('-j A'), text('')],
          owner: null,
        },
        { type: 'chain', table: 'filter', chain: 'KUBE-PROXY-PROBE', rules: [text('-j RETURN')], owner: null },
        { type: 'rule', verb: 'insert', table: 'nat', chain: 'OUTPUT', text: '-j KUBE-SERVICES' },
        {
          type: 'rule',
          verb: 'delete',
          table: 'nat',
          chain: 'INPUT',
          text: '-m comment --comment "a b" -j KUBE-OLD',
        },
        { type: 'delete-chain', table: 'nat', chain: 'KUBE-SVC-A' },
      ],
    }),
    [
      'IPv4 nat INPUT -D -m comment --comment "a b" -j KUBE-OLD',
      'IPv4 nat KUBE-SVC-A -X',
      'IPv4 nat KUBE-SVC-B -A 000000 -j Z',
      'IPv4 nat KUBE-SVC-B -A 000001 -j A',
      'IPv4 nat KUBE-SVC-B -A 000002 ',
      'IPv4 nat KUBE-SVC-B :',
      'IPv4 nat OUTPUT -I -j KUBE-SERVICES',
    ],
  );
  t.end();
});
