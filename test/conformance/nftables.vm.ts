// Cluster IPs in mode nftables on the other kernel.
// needs: nft, conntrack
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { SHORTEST } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

void t.test('mode nftables, another kernel', (t) => judge(t, SHORTEST, { mode: 'nftables', mostSteps: 1 }));
