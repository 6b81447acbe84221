// Cases of the conformance kit in mode ipvs, the legacy flavour: what is the same in both flavours has its place in the other file.
// needs: iptables, nft, conntrack, ip_vs
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { SHARED } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

void t.test('mode ipvs, iptables-legacy', (t) => judge(t, SHARED, { mode: 'ipvs-legacy', mostSteps: 2 }));
