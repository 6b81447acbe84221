// Session affinity in mode ipvs: the README of src/dataplane/ipvs says which rows differ. In a process of its own, as it waits for what ip_vs forgets.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../affinity.test.js'));
