// Packet files of the other modes in mode ipvs, the nft flavour, in one more process: the README of src/dataplane/ipvs says which rows differ.
import '../../support/namespace.js';

import { HERE_VARIABLE } from '../../support/lab/lab.js';
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[HERE_VARIABLE] = 'yes';
process.env[MODE_VARIABLE] = 'ipvs-nft';
await import('../udp-flows.test.js');
