// The conformance kit notices that mode iptables lacks a rule.
// needs: iptables, nft, conntrack
import t from 'tap';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { eachIsNoticed } from './left-out.js';

process.env[MODE_VARIABLE] = 'iptables-nft';

void t.test('mode iptables: packets show each rule that is left out', (t) =>
  eachIsNoticed(t, [
    '^KUBE-SERVICES: .*-j KUBE-NODEPORTS',
    '^KUBE-NODEPORTS: ',
    '^KUBE-SVC-\\w+: .*-j KUBE-MARK-MASQ',
    '^KUBE-EXT-\\w+: -j KUBE-MARK-MASQ',
    '^KUBE-EXT-\\w+: -m addrtype --src-type LOCAL',
    '^KUBE-EXT-\\w+: -s ',
    '^KUBE-MARK-MASQ: ',
    '^KUBE-POSTROUTING: .*-j MASQUERADE',
    '^KUBE-POSTROUTING: .*-j KUBE-SVC-HAIRPIN',
    '^KUBE-SERVICES.*-j REJECT',
    '^KUBE-EXTERNAL-.*-j REJECT',
    '^KUBE-EXTERNAL-.*-j DROP',
    '^KUBE-PROXY-FIREWALL: .*-j DROP',
    '^KUBE-FW-\\w+: -s ',
  ]),
);
