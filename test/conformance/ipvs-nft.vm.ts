// Cases of the conformance kit in mode ipvs, the nft flavour, by steps that the emulated machine has the time for.
// needs: iptables, nft, conntrack
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { CASES } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

/** Those of configurations that mode ipvs acts on by itself. */
const OWN = ['node-ports-prefixes', 'masquerade-undetected'];
const chosen = CASES.filter(({ id, own }) => own === undefined || OWN.includes(id));

void t.test('mode ipvs, iptables-nft', (t) => judge(t, chosen, { mode: 'ipvs-nft', mostSteps: 1 }));
