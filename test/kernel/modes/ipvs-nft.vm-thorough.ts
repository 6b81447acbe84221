// All packet files in mode ipvs, the nft flavour, in one process: the README of src/dataplane/ipvs says which rows differ.
// needs: iptables
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere(
  'ipvs-nft',
  () => import('../verdicts.test.js'),
  () => import('../node-ports.test.js'),
  () => import('../source-ranges.test.js'),
  () => import('../masquerade.test.js'),
  () => import('../service-fields.test.js'),
  () => import('../udp-flows.test.js'),
  () => import('../affinity.test.js'),
  () => import('../changes-under-traffic.test.js'),
);
