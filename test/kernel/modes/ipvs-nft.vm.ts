// Fields of Services in mode ipvs, the nft flavour: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-nft', () => import('../service-fields.test.js'));
