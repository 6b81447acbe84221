// Some packet files in mode nftables on the other kernel.
import '../../support/namespace.js';

import { HERE_VARIABLE } from '../../support/lab/lab.js';
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[HERE_VARIABLE] = 'yes';
process.env[MODE_VARIABLE] = 'nftables';
await import('../source-ranges.test.js');
await import('../fragments-and-errors.test.js');
