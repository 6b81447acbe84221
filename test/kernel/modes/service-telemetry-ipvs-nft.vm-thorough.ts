// What goes through Services and what is refused, counted in mode ipvs.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../service-telemetry.test.js'));
