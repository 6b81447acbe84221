// needs: nft, iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../trace.test.js'));
