// needs: iptables, ip_vs
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'ipvs-legacy';
await import('../selftest.test.js');
