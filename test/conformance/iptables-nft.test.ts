// Cases of the conformance kit in mode iptables, the nft flavour; npm test leaves out those that need a process of their own.
// needs: iptables, nft, conntrack
import t from 'tap';
import { usually } from '../support/extent.js';
import { CASES, SHARED } from './cases/index.js';
import { judge } from './judge.js';

void t.test('mode iptables, iptables-nft', (t) => judge(t, usually(SHARED, CASES), { mode: 'iptables-nft' }));
