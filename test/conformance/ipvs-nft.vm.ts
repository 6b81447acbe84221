// Cases of each kind in mode ipvs, the nft flavour: vm-thorough has all.
// needs: iptables, nft, conntrack
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { KINDS } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

void t.test('mode ipvs, iptables-nft', (t) => judge(t, KINDS, { mode: 'ipvs-nft', mostSteps: 1 }));
