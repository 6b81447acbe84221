// Packet files of the other modes in mode ipvs, the legacy flavour, in one process: the README of src/dataplane/ipvs says which rows differ.
import '../../support/namespace.js';

import { HERE_VARIABLE } from '../../support/lab/lab.js';
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[HERE_VARIABLE] = 'yes';
process.env[MODE_VARIABLE] = 'ipvs-legacy';
await import('../verdicts.test.js');
await import('../topology.test.js');
