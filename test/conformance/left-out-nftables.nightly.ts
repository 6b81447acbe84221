// The conformance kit notices that mode nftables lacks a rule.
// needs: nft, conntrack
import t from 'tap';
import { eachIsNoticed } from './left-out.js';

void t.test('mode nftables: packets show each rule that is left out', (t) =>
  eachIsNoticed(t, [
    '^nodeport-pick-.*"dnat"',
    '^dispatch: .*"@nodeport-frontends"',
    '^dispatch: .*"@cluster-addresses".*"mangle"',
    '^masquerade-sources: .*"@hairpin-pairs"',
    '^masquerade-sources: .*16384',
    '^check-frontends: .*"@rejected-frontends"',
    '^check-frontends: .*"@dropped-frontends"',
    '^check-nodeports: .*"@rejected-nodeports"',
    '^check-sources: .*"@restricted-frontends"',
    '^check-cluster-addresses: ',
    '^nat-output: .*"dispatch"',
    '^(nodeport-)?external-local-.*"flags":\\["saddr"\\]',
    '^admit-sources: \\[\\{"drop":null',
  ]),
);
