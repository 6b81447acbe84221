// Cases of the conformance kit in mode ipvs, the legacy flavour: the kernel has no nf_tables for those whose neighbours on the node use them.
// needs: iptables, conntrack, ip_vs
import '../support/namespace.js';

import t from 'tap';
import { HERE_VARIABLE } from '../support/extent.js';
import { CASES, startsNft } from './cases/index.js';
import { judge } from './judge.js';

process.env[HERE_VARIABLE] = 'yes';

void t.test('mode ipvs, iptables-legacy', (t) =>
  judge(
    t,
    CASES.filter((each) => !startsNft(each)),
    { mode: 'ipvs-legacy' },
  ),
);
