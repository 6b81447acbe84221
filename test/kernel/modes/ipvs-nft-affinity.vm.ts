// A packet file of the other modes in mode ipvs, the nft flavour, in a process of its own, as it waits for what ip_vs forgets.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../affinity.test.js'));
