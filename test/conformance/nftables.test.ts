// Every case of the conformance kit in mode nftables.
// needs: nft, conntrack
import t from 'tap';
import { CASES } from './cases/index.js';
import { judge } from './judge.js';

void t.test('mode nftables', (t) => judge(t, CASES, { mode: 'nftables' }));
