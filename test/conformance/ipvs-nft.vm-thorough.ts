// Every case of the conformance kit in mode ipvs, the nft flavour.
// needs: iptables, nft, conntrack
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { CASES } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

void t.test('mode ipvs, iptables-nft', (t) => judge(t, CASES, { mode: 'ipvs-nft' }));
