// Packet files of the other modes in mode ipvs, the legacy flavour, in one process: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../verdicts.test.js'));
