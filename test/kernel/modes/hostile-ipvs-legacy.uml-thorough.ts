// What one who may write Services can do to a node in mode ipvs, the legacy flavour.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../hostile.test.js'));
