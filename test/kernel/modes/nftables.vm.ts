// Fragments and ICMP errors in mode nftables on the other kernel.
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('nftables', () => import('../fragments-and-errors.test.js'));
