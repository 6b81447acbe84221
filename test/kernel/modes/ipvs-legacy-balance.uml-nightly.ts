// Weights, zones, slow start and hashing in mode ipvs, the legacy flavour: schedulers of ip_vs and weights of destinations.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../balance.test.js'));
