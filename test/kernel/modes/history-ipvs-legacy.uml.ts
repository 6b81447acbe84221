// needs: conntrack, iptables, ip_vs
import '../../support/namespace.js';

import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'ipvs-legacy';
await import('../history.test.js');
