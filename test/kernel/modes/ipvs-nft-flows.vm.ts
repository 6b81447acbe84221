// Packet files of the other modes in mode ipvs, the nft flavour, in one more process: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../udp-flows.test.js'));
