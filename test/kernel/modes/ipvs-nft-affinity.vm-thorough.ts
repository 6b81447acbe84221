// Session affinity in mode ipvs, the nft flavour, whole lists: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../affinity.test.js'));
