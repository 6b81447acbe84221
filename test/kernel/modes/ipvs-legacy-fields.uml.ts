// Fields of Services, and addresses that they give up, in mode ipvs, the legacy flavour: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables, ip_vs
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere('ipvs-legacy', () => import('../service-fields.test.js'));
