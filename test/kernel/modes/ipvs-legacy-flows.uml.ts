// Flows of UDP in mode ipvs: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../udp-flows.test.js'));
