import t from 'tap';
import { firewallOperations, RETRY_HOOKS } from '../../../src/dataplane/iptables/hooks.js';
import { isOwnChain } from '../../../src/dataplane/iptables/names.js';
import { ruleTarget } from '../../../src/dataplane/removal/chains.js';
import { hookRepairs, NAT_HOOKS } from '../../../src/dataplane/xtables/hooks.js';
import { chainId, FOREIGN_RULE } from '../../../src/dataplane/xtables/rules.js';
import { Unlisted } from '../../../src/dataplane/xtables/unlisted.js';
import type { IptablesChainListing } from '../../../src/native/contract.js';

function listed(name: string, fields: Partial<IptablesChainListing>): IptablesChainListing {
  return { table: 'nat', name, policy: null, ruleCount: 0, digest: null, rules: null, ...fields };
}

const PREROUTING = listed('PREROUTING', { policy: 'ACCEPT' });
const digests = (listing: readonly IptablesChainListing[]): unknown[] => listing.map(({ digest }) => digest);

t.test('a chain that cannot be listed is written once, and counts as written until it can be listed', (t) => {
  const unlisted = new Unlisted('nft', isOwnChain);
  const id = chainId('nat', 'KUBE-SERVICES');
  const acknowledged = new Map([[id, { digest: 'written', rules: 1 }]]);
  const listing = [PREROUTING, listed('KUBE-SERVICES', {}), listed('OTHERS', {})];
  t.same(digests(unlisted.believe(listing, acknowledged)), [null, null, null], 'nothing is known of it');
  t.same(digests(unlisted.believe(listing, acknowledged)), [null, null, null], 'nor in a second look');
  t.ok(unlisted.isNews);
  unlisted.note(unlisted.believe(listing, acknowledged));
  t.same(digests(unlisted.believe(listing, acknowledged)), [null, 'written', null]);
  t.notOk(unlisted.isNews, 'it is reported');
  t.match(unlisted.limitations, [{ of: 'rules', text: /iptables-nft-save .* table nat: .*; 1 .* KUBE-SERVICES$/ }]);
  t.equal(unlisted.limitations.length, 1);

  const found = [PREROUTING, listed('KUBE-SERVICES', { digest: 'others' })];
  t.same(digests(unlisted.believe(found, acknowledged)), [null, 'others']);
  t.match(unlisted.limitations, [{ text: /one by one$/ }]);
  t.same(digests(unlisted.believe(listing, acknowledged)), [null, null, null], 'it may have been changed since');
  unlisted.believe([listed('PREROUTING', { policy: 'ACCEPT', digest: 'x' })], acknowledged);
  t.same(unlisted.limitations, []);
  t.end();
});

t.test('rules that cannot be listed neither end the way to a jump nor have it inserted again', (t) => {
  const hooks = NAT_HOOKS.filter(({ chain }) => chain === 'PREROUTING');
  const jump = hooks[0]?.text ?? '';
  const repairs = (...rules: readonly string[]): readonly string[] =>
    hookRepairs([{ ...PREROUTING, rules }], hooks).map(({ verb }) => verb);
  t.same(repairs(`${FOREIGN_RULE} -j ACCEPT`, jump), []);
  t.same(repairs('-j ACCEPT', jump), ['delete', 'insert']);
  t.same(repairs(`${FOREIGN_RULE} -j KUBE-SERVICES`), [], 'it may be the jump');
  t.same(repairs(`${FOREIGN_RULE} -j KUBE-SERVICES`, jump, jump), ['delete']);
  t.same(repairs(FOREIGN_RULE, `${FOREIGN_RULE} -j OTHERS`), ['insert']);
  t.equal(ruleTarget(`${FOREIGN_RULE} -j OTHERS`), 'OTHERS', 'a removal finds where it leads');
  t.end();
});

t.test('in table raw a jump moves behind a rule that cannot be listed: it may decide how packets are tracked', (t) => {
  const hooks = RETRY_HOOKS.filter(({ chain }) => chain === 'PREROUTING');
  const jump = hooks[0]?.text ?? '';
  const repairs = (...rules: readonly string[]): readonly string[] =>
    hookRepairs([{ ...PREROUTING, table: 'raw', rules }], hooks).map(({ verb }) => verb);
  t.same(repairs(jump, FOREIGN_RULE), ['delete', 'append']);
  t.same(repairs(FOREIGN_RULE, jump, `${FOREIGN_RULE} -j ACCEPT`), []);
  t.end();
});

t.test('the guard of loopback is not added to a chain that cannot be listed and drops', (t) => {
  const chain = (...rules: readonly string[]): IptablesChainListing =>
    listed('KUBE-FIREWALL', { table: 'filter', rules });
  t.same(firewallOperations([chain(`${FOREIGN_RULE} -j DROP`)]), []);
  t.match(firewallOperations([chain(FOREIGN_RULE)]), [{ type: 'rule', verb: 'insert' }]);
  t.end();
});
