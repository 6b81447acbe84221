// Cases of the conformance kit in mode iptables, the legacy flavour: what is configured is the same in both flavours.
// needs: iptables, nft, conntrack
import t from 'tap';
import { SHARED } from './cases/index.js';
import { judge } from './judge.js';

void t.test('mode iptables, iptables-legacy', (t) => judge(t, SHARED, { mode: 'iptables-legacy' }));
